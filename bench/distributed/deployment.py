"""Starts the servers and the six processes, on disk, as a deployment would have them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.keys import NatsKeyStore
from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from tests.servers.cluster import Cluster, Servers, workspaces_variable
from tests.servers.nats import NatsServer
from tests.servers.opensearch import OpenSearchServer, opensearch_program
from tests.servers.process import ServerProcess
from tests.servers.qdrant import QdrantServer

# Java compiles as on a server: latencies are measured. The tests' options favour a quick start.
_JVM = ("-Xms1g", "-Xmx1g")
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Six:
    """A running deployment but for its workspace processes, and the servers that it uses."""

    cluster: Cluster
    servers: Mapping[str, ServerProcess]

    @asynccontextmanager
    async def workspaces(self, folders: Mapping[Scope, Path]) -> AsyncIterator[Workspaces]:
        """Run a workspace process for folders of one tenant."""
        async with AsyncExitStack() as stack:
            process = self.cluster.workspace(workspaces_variable(folders))
            stack.push_async_callback(asyncio.to_thread, process.kill)
            await asyncio.to_thread(process.start)
            yield Workspaces(process, await stack.enter_async_context(self.client(*folders)))

    @asynccontextmanager
    async def client(self, *scopes: Scope) -> AsyncIterator[MemorydClient]:
        """Make a key for workspaces of one tenant, and a client of the gateway with it."""
        async with AsyncExitStack() as stack:
            connection = await NatsConnection.open([self.cluster.servers.nats])
            stack.push_async_callback(connection.close)
            keys = await NatsKeyStore.open(connection, self.cluster.namespace)
            (tenant,) = {scope.tenant for scope in scopes}
            key = await keys.create(tenant, frozenset(scope.workspace for scope in scopes))
            client = MemorydClient(self.cluster.target("gateway"), key, timeout=_TIMEOUT)
            yield await stack.enter_async_context(client)


@dataclass(frozen=True)
class Workspaces:
    """A process of workspaces, and a client of the gateway whose key covers them."""

    process: ServerProcess
    client: MemorydClient


@asynccontextmanager
async def six_processes(
    root: Path,
    modules: Mapping[str, str] | None = None,
    before: Callable[[str, str], Awaitable[None]] | None = None,
    more: Mapping[str, str] | None = None,
) -> AsyncIterator[Six]:
    """Start all in `root`, and end all.

    Args:
        root: an empty folder.
        modules: run instead of services, by name.
        before: called with the URL of NATS and the namespace when the servers are there and the services are not.
        more: variables of the services' environment.
    """
    folders = {name: root / name for name in ("nats", "qdrant", "opensearch", "logs")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    nats, qdrant = NatsServer(folders["nats"]), QdrantServer(folders["qdrant"])
    program = await asyncio.to_thread(opensearch_program)
    opensearch = OpenSearchServer(program, folders["opensearch"], _JVM)
    servers = {"nats": nats.process, "qdrant": qdrant.process, "opensearch": opensearch.process}
    cluster = Cluster(
        folders["logs"],
        f"memoryd-bench-{secrets.token_hex(4)}",
        Servers(nats.url, qdrant.url, opensearch.url),
        more={
            "MEMORYD_OPENSEARCH_REFRESH_MILLISECONDS": "100",
            "MEMORYD_SEARCH_ANSWER_CACHE_BYTES": "0",
            "MEMORYD_SEARCH_VECTOR_CACHE_BYTES": "0",
            **(more or {}),
        },
        modules=modules,
    )
    try:
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in servers.values()))
        if before is not None:
            await before(nats.url, cluster.namespace)
        await asyncio.to_thread(cluster.start)
        yield Six(cluster, servers)
        await asyncio.to_thread(cluster.stop)
    finally:
        cluster.kill()
        for server in servers.values():
            server.kill()
