"""The shapes of a deployment. Scenarios are written once, against `Deployment`, and run on each shape."""
# ruff: noqa: ANN401  (options are the client's keyword arguments, passed on as they are)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from memoryd.client import MemorydClient, SearchReply, SearchResult
from memoryd.domain.names import Scope
from memoryd.ports import KeyStore
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.gateway.rpc import add_to
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import load
from tests.support.eventually import eventually
from tests.support.model import model_dir

WITHIN = 20.0


@dataclass
class Deployment:
    """A running memoryd.

    Attributes:
        address: of its gateway.
        keys: mints keys.
        client: of a key that covers all workspaces of the first one's tenant.
        standalone: its insides, where the shape is one process.
    """

    address: str
    keys: KeyStore
    client: MemorydClient
    standalone: Standalone | None = None

    async def found(self, query: str, **options: Any) -> list[str]:
        """The paths that a search finds, best first."""
        return [result.path for result in (await self.search(query, **options)).results]

    async def search(self, query: str, **options: Any) -> SearchReply:
        """Search."""
        return await self.client.search(query, **options)

    async def settled(self, workspace: str = "") -> None:
        """Wait until nothing is pending."""

        async def pending() -> int:
            return sum(status.pending for status in (await self.client.status(workspace=workspace)).workspaces)

        await eventually(pending, 0, WITHIN)

    async def until(
        self, query: str, wanted: Callable[[Sequence[SearchResult]], bool], within: float = WITHIN, **options: Any
    ) -> SearchReply:
        """Search until the results are as wanted; fails with the last ones after `within` seconds."""
        end = asyncio.get_running_loop().time() + within
        while True:
            reply = await self.search(query, **options)
            if wanted(reply.results):
                return reply
            late = asyncio.get_running_loop().time() > end
            assert not late, f"after {within} s {query!r} still finds {[result.path for result in reply.results]}"
            await asyncio.sleep(0.05)


class Shape(Protocol):
    """Starts a deployment on a data directory, with folders by scope."""

    def __call__(
        self, data: Path, folders: Mapping[Scope, Path], **settings: Any
    ) -> AbstractAsyncContextManager[Deployment]:
        """Start; what is indexed at the end of the context is there again at the next start."""
        ...


@asynccontextmanager
async def standalone(data: Path, folders: Mapping[Scope, Path], **settings: Any) -> AsyncIterator[Deployment]:
    """One process, this one."""
    loaded = load(
        data_dir=data,
        workspaces=[{"path": path, "name": scope.workspace, "tenant": scope.tenant} for scope, path in folders.items()],
        grpc=ServerSettings(address="127.0.0.1:0"),
        embedder={"model_dir": model_dir()},
        **settings,
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
                yield Deployment(server.address, running.keys, client, running)
            serving.cancel()


SHAPES: dict[str, Shape] = {"standalone": standalone}
