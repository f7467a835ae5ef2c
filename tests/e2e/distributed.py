"""The shape of many processes: the services run once a test session, the process of a test's folders is its own."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from qdrant_client import models

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.keys import NatsKeyStore
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.adapters.opensearch.connection import connect as connect_opensearch
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.qdrant.connection import connect as connect_qdrant
from memoryd.adapters.qdrant.points import any_of
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.ports import Principal
from tests.e2e.deployment import WITHIN, Deployment, logged
from tests.servers.cluster import Cluster, Folder, Servers, workspaces_variable
from tests.servers.nats import nats_url
from tests.servers.opensearch import opensearch_url
from tests.servers.process import once, server_folder
from tests.servers.qdrant import qdrant_url


@dataclass(frozen=True)
class Tenants:
    """Names a test's tenants so that no other test has the same, and mints keys for them."""

    place: str
    keys: NatsKeyStore

    @classmethod
    def of(cls, data: Path, keys: NatsKeyStore) -> Tenants:
        """Name them after a folder."""
        return cls(hashlib.sha256(str(data).encode()).hexdigest()[:12], keys)

    def scope(self, scope: Scope) -> Scope:
        """Give the scope that stands for a test's."""
        return Scope(self._name(scope.tenant), scope.workspace)

    async def principal(self, key: str) -> Principal | None:
        """See the port."""
        return await self.keys.principal(key)

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """See the port."""
        return await self.keys.create(self._name(tenant), workspaces)

    async def revoke(self, key_id: str) -> bool:
        """See the port."""
        return await self.keys.revoke(key_id)

    async def revoke_all(self, tenant: str) -> int:
        """See the port."""
        return await self.keys.revoke_all(self._name(tenant))

    def _name(self, tenant: str) -> str:
        return f"{tenant}-{self.place}"


@once
def _cluster() -> Cluster:
    servers = Servers(nats_url(), qdrant_url(), opensearch_url())
    cluster = Cluster(server_folder("services"), f"memoryd-e2e-{secrets.token_hex(4)}", servers)
    atexit.register(cluster.kill)
    cluster.start()
    return cluster


@asynccontextmanager
async def distributed(data: Path, folders: Mapping[Scope, Folder]) -> AsyncIterator[Deployment]:
    """All services, and one process for these folders."""
    cluster = await asyncio.to_thread(_cluster)
    async with deployed(cluster, data, folders) as deployment:
        yield deployment


@asynccontextmanager
async def deployed(cluster: Cluster, data: Path, folders: Mapping[Scope, Folder]) -> AsyncIterator[Deployment]:
    """A workspace process for these folders, beside a cluster that runs."""
    async with AsyncExitStack() as stack:
        connection = await NatsConnection.open([cluster.servers.nats])
        stack.push_async_callback(connection.close)
        tenants = Tenants.of(data, await NatsKeyStore.open(connection, cluster.namespace))
        log = await NatsFileLog.open(connection, cluster.namespace)
        stack.push_async_callback(log.close)
        asked = NatsWorkspace(connection, cluster.namespace, log)
        scopes = {tenants.scope(scope): folder for scope, folder in folders.items()}
        process = cluster.workspace(workspaces_variable(scopes))
        await asyncio.to_thread(process.start)
        stack.push_async_callback(asyncio.to_thread, process.stop)
        first = next(iter(folders))
        names = frozenset(scope.workspace for scope in folders if scope.tenant == first.tenant)
        key = await tenants.create(first.tenant, names)
        address = cluster.target("gateway")
        client = await stack.enter_async_context(MemorydClient(address, key, timeout=30.0))
        yield Deployment(
            address, tenants, client, partial(_sync, asked, list(scopes)), partial(_kept, cluster, log, list(scopes))
        )


async def _kept(cluster: Cluster, log: NatsFileLog, scopes: list[Scope]) -> tuple[str, str, str]:
    """Ask the servers themselves, whatever the adapters would let pass."""
    tenants = sorted({scope.tenant for scope in scopes})
    qdrant = connect_qdrant(QdrantSettings(url=cluster.servers.qdrant))
    mine = models.Filter(must=[any_of("tenant", tenants)])
    vectors = [
        repr(record)
        for found in (await qdrant.get_collections()).collections
        if found.name.startswith(cluster.namespace)
        for record in (await qdrant.scroll(found.name, mine, limit=1000, with_payload=True))[0]
    ]
    await qdrant.close()
    opensearch = connect_opensearch(OpenSearchSettings(url=cluster.servers.opensearch))
    query = {"query": {"terms": {"tenant": tenants}}, "size": 1000}
    answer = await opensearch.search(index=f"{cluster.namespace}*", body=query)
    await opensearch.close()
    return await logged(log, scopes), "\n".join(vectors), repr(answer["hits"]["hits"])


async def _sync(workspace: NatsWorkspace, scopes: list[Scope]) -> None:
    for scope in scopes:
        await workspace.sync(scope, WITHIN)
