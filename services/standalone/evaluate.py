"""Evaluating: a retrieval set's documents become files of workspaces, indexed and served for as long as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.client import MemorydClient
from memoryd.evaluation.sets import RetrievalSet, write
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.gateway.rpc import add_to
from services.standalone.app import Standalone, open_standalone
from services.standalone.index import at_full_speed, until_switched
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import LOCAL_TENANT, WorkspaceSettings

# Nobody waits for these answers: a slow machine must not turn into degraded ones.
_TIMEOUT = 60.0


@asynccontextmanager
async def served(data: RetrievalSet, folder: Path, settings: StandaloneSettings) -> AsyncIterator[MemorydClient]:
    """Write the documents below `folder`, and serve them on a port of this machine, without TLS."""
    async with hosted(data, folder, settings) as (_, client):
        yield client


@asynccontextmanager
async def hosted(
    data: RetrievalSet, folder: Path, settings: StandaloneSettings
) -> AsyncIterator[tuple[Standalone, MemorydClient]]:
    """Do as `served` does, and give what serves, too."""
    await asyncio.to_thread(write, data, folder)
    workspaces = tuple(WorkspaceSettings(path=folder / group, name=group) for group in data.groups)
    # The same queries come in several modes, and how long each takes is measured.
    search = settings.search.without_caches()
    settings = settings.model_copy(update={"workspaces": workspaces, "search": search})
    server = Server(ServerSettings(address="127.0.0.1:0", tls_cert=None, tls_key=None, tls_client_ca=None))
    async with open_standalone(at_full_speed(settings)) as standalone:
        await until_switched(standalone, lambda *_: None)
        add_to(server, standalone.gateway, standalone.keys)
        async with server:
            serving = asyncio.create_task(server.serve())
            key = await standalone.keys.create(LOCAL_TENANT, frozenset(data.groups))
            try:
                async with MemorydClient(server.address, key, timeout=_TIMEOUT) as client:
                    yield standalone, client
            finally:
                serving.cancel()
