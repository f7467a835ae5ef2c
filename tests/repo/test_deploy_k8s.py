import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from memoryd.process.settings import read
from memoryd.server import probe as probe_module
from memoryd.server.lifecycle import LIVENESS
from memoryd.server.settings import ServerSettings
from tests.repo.deployment import containers, manifests, of_kind, our_service, pods, settings_of, variables

RENDERED = ("base", "overlays/dev", "overlays/production", "examples/agent", "examples/model-change", "examples/traces")
SCALING = ("embedder", "gateway", "indexer", "search")
SECRETS = {
    "nats-url": "nats://user:secret@nats:4222",
    "opensearch-password": "secret",
    "opensearch-username": "memoryd",
    "qdrant-api-key": "secret",
    "service-tokens": "a-token-of-16-or-more",
    "memoryd-key": "an agent's",
}
DRAIN = ServerSettings.model_fields["drain"].default


def value(objects: list[dict[str, Any]], variable: Mapping[str, Any]) -> str:
    """Resolve a variable: a value, or a reference to a ConfigMap or Secret."""
    source = variable.get("valueFrom", {})
    if reference := source.get("configMapKeyRef"):
        (found,) = [each for each in of_kind(objects, "ConfigMap") if each["metadata"]["name"] == reference["name"]]
        return str(found["data"][reference["key"]])
    if "secretKeyRef" in source:
        return SECRETS[source["secretKeyRef"]["key"]]
    return str(variable.get("value", ""))


def environment(objects: list[dict[str, Any]], name: str) -> dict[str, str]:
    (container,) = [each for pod_name, pod in pods(objects) if pod_name == name for each in pod["containers"]]
    return {variable["name"]: value(objects, variable) for variable in container["env"]}


@pytest.mark.parametrize("folder", RENDERED)
def test_each_variable_is_read_by_its_service_and_each_value_is_taken(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = manifests(folder)
    for _, pod in pods(objects):
        for container in containers(pod):
            service = our_service(container["image"])
            if service is None:
                continue
            values = {variable["name"]: value(objects, variable) for variable in container["env"]}
            used = {name for text in values.values() for name in re.findall(r"\$\((\w+)\)", text)}
            assert values.keys() - variables(service) - used == set(), service
            with monkeypatch.context() as patch:
                for name, text in values.items():
                    patch.setenv(name, re.sub(r"\$\((\w+)\)", lambda match: match[1].lower(), text))
                read(settings_of(service))


@pytest.mark.parametrize("folder", RENDERED)
def test_pods_have_no_privilege(folder: str) -> None:
    for name, pod in pods(manifests(folder)):
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in containers(pod):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert context["readOnlyRootFilesystem"] is (name != "opensearch"), name
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), name
            assert "memory" in container["resources"]["limits"], name


@pytest.mark.parametrize("folder", RENDERED)
def test_images_have_a_version(folder: str) -> None:
    images = [container["image"] for _, pod in pods(manifests(folder)) for container in containers(pod)]
    if folder == "base":  # overlays name them
        assert sorted(images) == [f"memoryd-{name}" for name in SCALING]
    else:
        assert [image for image in images if not re.search(r":[\w.-]+$", image) or image.endswith(":latest")] == []


def asked(probe: Mapping[str, Any]) -> str:
    """Give the health service that a probe asks for: the kubelet itself, or with TLS our program in the container."""
    if "exec" in probe:
        python, flag, module, *service = probe["exec"]["command"]
        assert (python, flag, module) == ("python", "-m", probe_module.__name__)
        return "".join(service)
    assert probe["grpc"]["port"] == 7420
    return str(probe["grpc"].get("service", ""))


@pytest.mark.parametrize("folder", RENDERED)
def test_probes_of_services(folder: str) -> None:
    for _, pod in pods(manifests(folder)):
        for container in containers(pod):
            if our_service(container["image"]) is None:
                continue
            # A dependency that is down must restart nothing.
            assert asked(container["livenessProbe"]) == LIVENESS
            assert asked(container["startupProbe"]) == LIVENESS
            if our_service(container["image"]) != "workspace":  # nobody calls it
                assert asked(container["readinessProbe"]) == ""


@pytest.mark.parametrize("name", SCALING)
def test_a_scaling_service_is_complete(name: str) -> None:
    objects = manifests("base")
    named = {each["kind"]: each for each in objects if each["metadata"]["name"] == name}
    assert named["ServiceAccount"]["automountServiceAccountToken"] is False
    assert named["Service"]["spec"]["clusterIP"] == "None"
    assert named["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    pod = named["Deployment"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == name
    labels = named["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "Deployment"):
        selector = named[kind]["spec"]["selector"]
        assert selector.get("matchLabels", selector).items() <= labels.items()
    # It may replicate by itself, or have a number.
    assert ("HorizontalPodAutoscaler" in named) == ("replicas" not in named["Deployment"]["spec"])


def test_a_pod_has_time_to_drain() -> None:
    for _, pod in pods(manifests("base")):
        (container,) = pod["containers"]
        before = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        # Calls in flight and, in the indexer, its work; then adapters are closed.
        assert pod["terminationGracePeriodSeconds"] >= before + 2 * DRAIN + 10


def test_production_keeps_everything_three_times() -> None:
    objects = manifests("overlays/production")
    indexer = environment(objects, "indexer")
    assert indexer["MEMORYD_NATS_REPLICAS"] == "3"
    assert indexer["MEMORYD_QDRANT_REPLICATION"] == "3"
    assert indexer["MEMORYD_OPENSEARCH_REPLICAS"] == "2"  # beside the first
    assert [each["spec"]["minReplicas"] for each in of_kind(objects, "HorizontalPodAutoscaler")] == [3, 3, 3]


def test_production_encrypts_and_inner_services_want_certificates() -> None:
    objects = manifests("overlays/production")
    for name in SCALING:
        values = environment(objects, name)
        assert values["MEMORYD_GRPC_TLS_CERT"]
        assert values["MEMORYD_SERVICE_CA"]
        assert ("MEMORYD_GRPC_TLS_CLIENT_CA" in values) == (name != "gateway")


def test_the_next_embedder_is_the_embedder_under_another_name() -> None:
    production, changing = manifests("overlays/production"), manifests("examples/model-change")

    def named(name: str) -> dict[str, Any]:
        found = [each for each in changing if each["metadata"]["name"] == name]
        renamed = json.loads(json.dumps(found).replace("next-embedder", "embedder").replace("0-other-model", "0"))
        return {each["kind"]: each for each in renamed}

    one, other = named("embedder"), named("next-embedder")
    for each in (one, other):  # what an overlay replicates
        each["HorizontalPodAutoscaler"]["spec"].update({"minReplicas": 0, "maxReplicas": 0})
    # The gateway asks the first one alone.
    (rule,) = other["NetworkPolicy"]["spec"]["ingress"]
    rule["from"][0]["podSelector"]["matchExpressions"][0]["values"].append("gateway")
    for kind in one.keys() | other.keys():
        assert in_order(one[kind]) == in_order(other[kind]), kind
    for name in ("indexer", "search"):
        values = environment(changing, name)
        assert values.pop("MEMORYD_CLIENT_NEXT_EMBEDDER") == "next-embedder:7420"
        assert values == environment(production, name)


def in_order(value: object) -> object:
    """Sort the lists of objects in an object, such as variables and volumes: their order says nothing here."""
    if isinstance(value, dict):
        return {name: in_order(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted(map(in_order, value), key=repr) if all(isinstance(each, dict) for each in value) else value
    return value


@pytest.mark.parametrize("folder", RENDERED)
def test_no_secret_is_in_the_manifests(folder: str) -> None:
    assert of_kind(manifests(folder), "Secret") == []


def test_the_sidecar_shares_the_agent_s_folder() -> None:
    (_, pod), *others = pods(manifests("examples/agent"))
    assert others == []
    sidecar, agent = containers(pod)
    assert our_service(sidecar["image"]) == "workspace"
    assert sidecar["restartPolicy"] == "Always"  # what makes it a sidecar
    folder = {"name": "workspace", "mountPath": "/workspace"}
    assert folder in sidecar["volumeMounts"]
    assert folder in agent["volumeMounts"]
