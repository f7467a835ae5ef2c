"""Where standalone's settings come from, and what is said of wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memoryd.errors import ConfigError
from services.standalone.settings import load
from tests.repo.checkout import ROOT


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "memoryd.toml"
    file.write_text('[grpc]\naddress = "127.0.0.1:1"\ndrain = 3\n')
    return file


def test_the_readme_s_configuration_can_be_used(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.+?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    file = tmp_path / "memoryd.toml"
    file.write_text(example)
    settings = load(file)
    assert [str(workspace.scope) for workspace in settings.workspaces] == ["local/rod", "acme/linwei"]
    assert settings.grpc.address == "127.0.0.1:7420"


def test_an_argument_replaces_one_key_of_a_section(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_GRPC_MAX_CALLS", "7")
    grpc = load(config, grpc={"address": "127.0.0.1:2"}).grpc
    assert (grpc.address, grpc.drain, grpc.max_calls) == ("127.0.0.1:2", 3.0, 7)
    assert load(config, grpc=None).grpc.address == "127.0.0.1:1"


def test_a_variable_wins_over_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_GRPC_ADDRESS", "127.0.0.1:3")
    assert (load(config).grpc.address, load(config).grpc.drain) == ("127.0.0.1:3", 3.0)


def test_a_wrong_argument_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"grpc\.address: .*'127\.0\.0\.1:x' is neither HOST:PORT"):
        load(grpc={"address": "127.0.0.1:x"})
