"""The shapes of a deployment. Scenarios are written once, against `Deployment`, and run on each shape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.gateway.rpc import add_to
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import load
from tests.e2e.deployment import WITHIN, Deployment, Shape
from tests.e2e.distributed import distributed
from tests.support.model import model_dir


@dataclass
class StandaloneDeployment(Deployment):
    """One process, and its insides."""

    insides: Standalone


@asynccontextmanager
async def standalone(data: Path, folders: Mapping[Scope, Path]) -> AsyncIterator[StandaloneDeployment]:
    """One process, this one."""
    loaded = load(
        data_dir=data,
        workspaces=[{"path": path, "name": scope.workspace, "tenant": scope.tenant} for scope, path in folders.items()],
        grpc=ServerSettings(address="127.0.0.1:0"),
        embedder={"model_dir": model_dir()},
    )
    async with open_standalone(loaded) as running:
        server = Server(loaded.grpc)
        add_to(server, running.gateway, running.keys)
        async with server:
            serving = asyncio.create_task(server.serve())
            first = next(iter(folders))
            names = frozenset(scope.workspace for scope in folders if scope.tenant == first.tenant)
            key = await running.keys.create(first.tenant, names)
            async with MemorydClient(server.address, key, timeout=30.0) as client:
                synced = partial(_sync, running, folders)
                yield StandaloneDeployment(server.address, running.keys, client, synced, running)
            serving.cancel()


async def _sync(running: Standalone, folders: Mapping[Scope, Path]) -> None:
    for scope in folders:
        await running.workspaces.sync(scope, WITHIN)


SHAPES: dict[str, Shape] = {"standalone": standalone, "distributed": distributed}
