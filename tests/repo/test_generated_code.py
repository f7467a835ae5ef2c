import re
import tomllib

from packaging.requirements import Requirement
from packaging.version import Version

from tests.repo.checkout import GENERATED, ROOT
from tools.generate_proto import stale_files


def test_generated_code_is_up_to_date() -> None:
    assert stale_files() == []


def test_oldest_admitted_libraries_run_the_generated_code() -> None:
    # Generated modules refuse, at import, a library older than their generator.
    needed = {
        "grpcio": re.search(r"GRPC_GENERATED_VERSION = '(.+)'", (GENERATED / "memory_pb2_grpc.py").read_text()),
        "protobuf": re.search(r"# Protobuf Python Version: (.+)", (GENERATED / "memory_pb2.py").read_text()),
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    admitted = {Requirement(text).name: Requirement(text).specifier for text in project["dependencies"]}
    for name, match in needed.items():
        assert match is not None
        oldest = min(Version(part.version) for part in admitted[name] if part.operator == ">=")
        assert oldest >= Version(match[1]), f"{name} {oldest} is admitted by pyproject.toml"
