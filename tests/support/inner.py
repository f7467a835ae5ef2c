"""Inner services on a real server, and the adapters that reach them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr

from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.indexing import GrpcIndexing
from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.searcher import GrpcSearcher
from memoryd.adapters.grpc.settings import ClientSettings, Name
from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgeOrder, PurgeReceipt
from memoryd.domain.repairs import Checkup
from memoryd.ports import IndexStatus, Maintenance, Searcher, StreamingEmbedder
from memoryd.server.credentials import ServiceCredentialSettings, service_authenticator
from memoryd.server.interceptor import Authenticate
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.embedder.rpc import add_to as add_embedder
from services.embedder.served import ServedEmbedder
from services.indexer.rpc import UseCases
from services.indexer.rpc import add_to as add_indexer
from services.search.rpc import add_to as add_search
from tests.support.gateway import FakeIndexing

CREDENTIALS = ServiceCredentialSettings(tokens=(SecretStr("the-tests-own-token"),))
LOCAL = ServerSettings(address="127.0.0.1:0")


@dataclass
class FakeIndexer(FakeIndexing):
    """Reports what the test put in, and remembers what it was asked to do."""

    error: Exception | None = None
    checkups: dict[Scope, Checkup] = field(default_factory=dict)
    receipt: PurgeReceipt = field(default_factory=lambda: PurgeReceipt((), verified=True))
    asked: list[object] = field(default_factory=list)

    async def status(self, scope: Scope) -> IndexStatus:
        if self.error:
            raise self.error
        return await super().status(scope)

    async def reindex(self, scope: Scope) -> int:
        return 7

    async def workspaces(self) -> Sequence[Scope]:
        return sorted(self.statuses)

    async def check(self, scope: Scope, *, mend: bool, timeout: float) -> Checkup:
        self.asked.append((scope, mend))
        return self.checkups[scope]

    async def purge(self, order: PurgeOrder, *, timeout: float) -> PurgeReceipt:
        self.asked.append(order)
        return self.receipt

    async def unblock(self, key: FileKey, *, timeout: float) -> bool:
        self.asked.append(key)
        return True


Add = Callable[[Server, Authenticate], None]


@asynccontextmanager
async def serving(
    add: Add, settings: ServerSettings = LOCAL, credentials: ServiceCredentialSettings = CREDENTIALS
) -> AsyncIterator[Server]:
    """Run a server of one service until the block ends."""
    server = Server(settings)
    add(server, service_authenticator(settings, credentials))
    async with server:
        served = asyncio.create_task(server.serve())
        try:
            yield server
        finally:
            served.cancel()
            await asyncio.wait({served})


@asynccontextmanager
async def remote(
    name: Name, addresses: Sequence[str], credentials: ServiceCredentialSettings = CREDENTIALS
) -> AsyncIterator[Remote]:
    """Give the way to a service in one or more replicas."""
    address = addresses[0] if len(addresses) == 1 else f"ipv4:{','.join(addresses)}"
    reached = Remote(name, ClientSettings.model_validate({name: address}), credentials)
    try:
        yield reached
    finally:
        await reached.close()


@asynccontextmanager
async def grpc_searcher(service: Searcher) -> AsyncIterator[Searcher]:
    """Reach a searcher over gRPC."""
    async with reached("search", lambda server, known: add_search(server, service, known)) as way:
        yield GrpcSearcher(way)


@asynccontextmanager
async def grpc_indexing(service: UseCases) -> AsyncIterator[Maintenance]:
    """Reach an indexer over gRPC."""
    async with reached("indexer", lambda server, known: add_indexer(server, service, known)) as way:
        yield GrpcIndexing(way)


@asynccontextmanager
async def grpc_embedder(opened: AbstractAsyncContextManager[ServedEmbedder]) -> AsyncIterator[StreamingEmbedder]:
    """Reach an embedder over gRPC, bound to its model."""
    async with (
        opened as service,
        reached("embedder", lambda server, known: add_embedder(server, service, known)) as way,
    ):
        yield await GrpcEmbedder(way).bound()


@asynccontextmanager
async def reached(name: Name, add: Add) -> AsyncIterator[Remote]:
    """Serve a service and give the way to it."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(add))
        yield await stack.enter_async_context(remote(name, [server.address]))
