"""The processes of a deployment, each of which can be stopped and started again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from memoryd.domain.names import Scope
from memoryd.server.probe import health
from memoryd.server.settings import ServerSettings
from tests.servers.process import ServerProcess, free_port
from tests.support.model import model_dir

SERVICES = ("embedder", "indexer", "search", "gateway")


@dataclass(frozen=True)
class Servers:
    """Where NATS, Qdrant and OpenSearch are."""

    nats: str
    qdrant: str
    opensearch: str


# A folder, or a workspace's settings with its `path`.
Folder = Path | Mapping[str, Any]


def workspace_settings(scope: Scope, folder: Folder) -> dict[str, Any]:
    """Give the settings of a workspace."""
    given = {"path": folder} if isinstance(folder, Path) else folder
    return {**given, "name": scope.workspace, "tenant": scope.tenant}


def workspaces_variable(folders: Mapping[Scope, Folder]) -> str:
    """Give MEMORYD_WORKSPACES of a process for these folders."""
    return json.dumps([workspace_settings(scope, folder) for scope, folder in folders.items()], default=str)


class Cluster:
    """All processes but those of workspaces, on a namespace of their own.

    Args:
        root: where the logs go.
        namespace: what the names on the servers begin with.
        servers: NATS, Qdrant and OpenSearch.
        replicas: processes of each service.
        more: environment variables beside those that all need.
        modules: what to run instead of `services.NAME`, by name.
    """

    def __init__(
        self,
        root: Path,
        namespace: str,
        servers: Servers,
        *,
        replicas: int = 1,
        more: Mapping[str, str] | None = None,
        modules: Mapping[str, str] | None = None,
    ) -> None:
        self.namespace, self.servers = namespace, servers
        self._root, self._numbers, self._more = root, count(), dict(more or {})
        self._modules = dict(modules or {})
        ports = {name: [free_port() for _ in range(replicas)] for name in SERVICES}
        self.addresses = {name: [f"127.0.0.1:{port}" for port in ports[name]] for name in SERVICES}
        self.processes = {
            name: [self._process(name, address, {}) for address in self.addresses[name]] for name in SERVICES
        }

    def target(self, name: str) -> str:
        """Give the address of a service in all its replicas."""
        return f"ipv4:{','.join(self.addresses[name])}"

    def start(self) -> None:
        """Start all at once: each waits for what it needs."""
        with ThreadPoolExecutor(len(SERVICES) * 2) as pool:
            for _ in pool.map(ServerProcess.start, self._all()):
                pass

    def stop(self) -> None:
        """Ask all to end."""
        with ThreadPoolExecutor(len(SERVICES) * 2) as pool:
            for _ in pool.map(ServerProcess.stop, self._all()):
                pass

    def kill(self) -> None:
        """End all at once."""
        for process in self._all():
            process.kill()

    def workspace(self, workspaces: str) -> ServerProcess:
        """Make a process of the workspace service, not yet started."""
        return self._process("workspace", f"127.0.0.1:{free_port()}", {"MEMORYD_WORKSPACES": workspaces})

    def embedder(self, address: str, model: Path) -> ServerProcess:
        """Make one more process of the embedder, with a model of its own, not yet started."""
        return self._process("embedder", address, {"MEMORYD_EMBEDDER_MODEL_DIR": str(model)})

    def environment(self) -> dict[str, str]:
        """What all processes have in their environment."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYD_")}
        return kept | {
            "MEMORYD_NAMESPACE": self.namespace,
            "MEMORYD_NATS_URL": self.servers.nats,
            "MEMORYD_QDRANT_URL": self.servers.qdrant,
            "MEMORYD_OPENSEARCH_URL": self.servers.opensearch,
            "MEMORYD_OPENSEARCH_REFRESH_MILLISECONDS": "20",
            "MEMORYD_SERVICE_TOKENS": "a token that only tests know".replace(" ", "-"),
            "MEMORYD_CLIENT_EMBEDDER": self.target("embedder"),
            "MEMORYD_CLIENT_SEARCH": self.target("search"),
            "MEMORYD_CLIENT_INDEXER": self.target("indexer"),
            "MEMORYD_EMBEDDER_MODEL_DIR": str(model_dir()),
            **self._more,
        }

    def logs(self, name: str) -> list[Path]:
        """Give the logs of a service's processes."""
        return sorted(self._root.glob(f"{name}-*.log"))

    def _all(self) -> Iterator[ServerProcess]:
        return (process for processes in self.processes.values() for process in processes)

    def _process(self, name: str, address: str, more: dict[str, str]) -> ServerProcess:
        return ServerProcess(
            [sys.executable, "-m", self._modules.get(name, f"services.{name}")],
            self._root / f"{name}-{next(self._numbers)}.log",
            lambda: health(ServerSettings(address=address)) == "SERVING",
            self.environment() | {"MEMORYD_GRPC_ADDRESS": address} | more,
        )


@contextmanager
def running_cluster(cluster: Cluster, *servers: ServerProcess) -> Iterator[None]:
    """Start servers, then a cluster on them; kill all in the end, whatever of it did not start."""
    try:
        for server in servers:
            server.start()
        cluster.start()
        yield
    finally:
        cluster.kill()
        for server in servers:
            server.kill()
