"""The shapes of a deployment. Scenarios are written once, against `Deployment`, and run on each shape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.ports import Filter, QueryTerm
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.gateway.rpc import add_to
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import load
from tests.e2e.deployment import WITHIN, Deployment, Shape, logged
from tests.e2e.distributed import distributed
from tests.servers.cluster import Folder, workspace_settings
from tests.support.hits import text_hits, vector_hits
from tests.support.model import model_dir

_ALL = 10_000


@dataclass
class StandaloneDeployment(Deployment):
    """One process, and its insides."""

    insides: Standalone


@asynccontextmanager
async def standalone(data: Path, folders: Mapping[Scope, Folder]) -> AsyncIterator[StandaloneDeployment]:
    """One process, this one."""
    loaded = load(
        data_dir=data,
        workspaces=[workspace_settings(scope, folder) for scope, folder in folders.items()],
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
                kept = partial(_kept, running, folders)
                yield StandaloneDeployment(server.address, running.keys, client, synced, kept, running)
            serving.cancel()


async def _sync(running: Standalone, folders: Mapping[Scope, Folder]) -> None:
    for scope in folders:
        await running.workspaces.sync(scope, WITHIN)


async def _kept(running: Standalone, folders: Mapping[Scope, Folder]) -> tuple[str, str, str]:
    parts, texts, vectors = running.parts, [], []
    model = await parts.embedder.info()
    for scope in folders:
        anything = np.ones(model.dimensions, dtype=np.float32)
        found = await vector_hits(parts.vectors, anything, Filter(scope), _ALL)
        vectors += [repr(hit.chunk) for hit in found]
        words = {QueryTerm(word) for hit in found for word in hit.chunk.terms.split()}
        texts += [repr(hit.chunk) for hit in await text_hits(parts.texts, list(words), Filter(scope), _ALL)]
    return await logged(running.log, folders), "\n".join(vectors), "\n".join(texts)


SHAPES: dict[str, Shape] = {"standalone": standalone, "distributed": distributed}
