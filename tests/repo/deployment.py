"""What deploys memoryd: the compose file, rendered manifests, and which variables a service reads."""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from opentelemetry.sdk import environment_variables
from pydantic_settings import BaseSettings

from tests.repo.checkout import ROOT

PROCESSES = ("embedder", "gateway", "indexer", "search", "workspace")
# Read without a settings class: memoryd/endpoint.py and memoryd/models/spec.py.
PLAIN = {"MEMORYD_DATA_DIR", "MEMORYD_KEY", "MEMORYD_MODEL_DIR", "MEMORYD_SERVER"}
_STANDARD = frozenset(name for name in vars(environment_variables) if name.startswith("OTEL_"))


def settings_of(service: str) -> type[BaseSettings]:
    """Give the settings class of a service's process."""
    settings: type[BaseSettings] = importlib.import_module(f"services.{service}.__main__").Settings
    return settings


@functools.cache
def variables(service: str) -> frozenset[str]:
    """List the environment variables that a service's process reads: its settings, and OpenTelemetry's own."""
    return frozenset(_variables(settings_of(service))) | _STANDARD


def _variables(settings: type[BaseSettings]) -> Iterator[str]:
    for name, field in settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseSettings):
            yield from _variables(field.annotation)
        else:
            yield str(field.validation_alias or f"{settings.model_config['env_prefix']}{name}").upper()


@functools.cache
def compose() -> dict[str, Any]:
    """Give the compose file."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


@functools.cache
def manifests(folder: str) -> list[dict[str, Any]]:
    """Render a kustomization below deploy/k8s. Without a renderer the test is skipped; where CI is true it fails."""
    for command in (["kubectl", "kustomize"], ["kustomize", "build"]):
        if program := shutil.which(command[0]):
            rendered = subprocess.run(
                [program, *command[1:], str(ROOT / "deploy/k8s" / folder)], capture_output=True, check=True, text=True
            )
            return list(yaml.safe_load_all(rendered.stdout))
    reason = "kubectl or kustomize is needed to render deploy/k8s"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def of_kind(objects: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    """Pick objects by kind."""
    return [each for each in objects if each["kind"] in kinds]


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the name and the pod of each workload."""
    for workload in of_kind(objects, "Deployment", "StatefulSet"):
        yield workload["metadata"]["name"], workload["spec"]["template"]["spec"]


def containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the containers of a pod, sidecars too."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def our_service(image: str) -> str | None:
    """Name the service whose image it is; None where it is not ours."""
    name = image.rpartition("/")[2].partition(":")[0]
    return name.removeprefix("memoryd-") if name.startswith("memoryd-") else None
