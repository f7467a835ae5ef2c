"""The indexer's use cases, asked of the generation that answers searches now."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Generic, TypeVar

from memoryd.domain.names import Scope
from memoryd.generations.live import Live
from memoryd.ports import Indexing, IndexStatus
from services.indexer.generation import Failure, IndexedGeneration

P = TypeVar("P")

# Seconds after which a wait looks whether another generation answers now.
_LOOK_AGAIN = 1.0


class CurrentIndexing(Indexing, Generic[P]):
    """What `Indexer` offers, over the open generations.

    Args:
        live: the open generations.
        indexed_of: what indexes one of them.
        failure: what has ended one.
        disk_bytes: measures the indexes of all; None where they are elsewhere.
    """

    def __init__(
        self,
        live: Live[P],
        indexed_of: Callable[[P], IndexedGeneration],
        failure: Failure,
        disk_bytes: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._live, self._of, self._failure, self._disk_bytes = live, indexed_of, failure, disk_bytes

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending."""
        async with self._live.using() as (name, bundle):
            return _named(name, await self._of(bundle).indexer.status(scope))

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        return await self._disk_bytes() if self._disk_bytes else 0

    async def progress(self, scope: Scope, timeout: float = math.inf) -> AsyncIterator[IndexStatus]:
        """Report the status, now and after changes, until nothing is pending or `timeout` seconds are over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            async with self._live.using() as (name, bundle):
                left = min(_LOOK_AGAIN, deadline - loop.time())
                async for status in self._of(bundle).indexer.progress(scope, left):
                    yield _named(name, status)
            if not status.pending or loop.time() >= deadline:
                return

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        """Compare a folder with the file log and wait until what differs is searchable.

        Returns how many file states were put, and how many are still pending when the time is over.
        """
        async with self._live.using() as (_, bundle):
            return await self._of(bundle).indexer.sync(scope, timeout)

    async def reindex(self, scope: Scope) -> int:
        """Put every file of a workspace into the queue of every generation again; returns how many."""
        async with self._live.using() as (_, bundle):
            return await self._of(bundle).indexer.reindex(scope)

    async def closed(self) -> None:
        """Wait until the indexing of a generation fails; raises what ended it."""
        await self._failure.wait()


def _named(name: str, status: IndexStatus) -> IndexStatus:
    """Two generations count their commits alike: the revision names the one that it belongs to."""
    return replace(status, revision=f"{name}.{status.revision}")
