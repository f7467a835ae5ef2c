"""What scenarios are written against, whatever the shape."""
# ruff: noqa: ANN401  (options are the client's keyword arguments, passed on as they are)

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from memoryd.client import MemorydClient, SearchReply, SearchResult
from memoryd.domain.names import Scope
from memoryd.ports import FileLog, KeyStore
from tests.servers.cluster import Folder
from tests.support.eventually import eventually

WITHIN = 20.0


@dataclass
class Deployment:
    """A running memoryd.

    Attributes:
        address: of its gateway.
        keys: mints keys.
        client: of a key that covers all workspaces of the first one's tenant.
        synced: makes that what the folders hold now can be read (what is searchable comes later).
        kept: gives all that the file log, the vector store and the text store hold of the folders, each as one text.
    """

    address: str
    keys: KeyStore
    client: MemorydClient
    synced: Callable[[], Awaitable[object]]
    kept: Callable[[], Awaitable[tuple[str, str, str]]]

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


async def logged(log: FileLog, scopes: Iterable[Scope]) -> str:
    """Give all that a file log holds of workspaces."""
    states = []
    for scope in scopes:
        for key in [listed.state.key async for listed in log.scan(scope)]:
            logged_file = await log.get(key)
            states.append(repr(logged_file))
    return "\n".join(states)


class Shape(Protocol):
    """Starts a deployment on a data directory, with folders by scope."""

    def __call__(self, data: Path, folders: Mapping[Scope, Folder]) -> AbstractAsyncContextManager[Deployment]:
        """Start; what is indexed at the end of the context is there again at the next start."""
        ...
