"""What is told of each workspace beside its counts: how long it has been behind; and all of it as metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from memoryd.domain.names import Scope
from memoryd.ports import IndexStatus
from services.indexer.metrics import IndexerMetrics
from services.indexer.settle import Settler

_EVERY = 15.0


class Reporter:
    """Watches over the workspaces of one indexer, as far as this replica can see them."""

    def __init__(
        self,
        *,
        scopes: Callable[[], Awaitable[Sequence[Scope]]],
        status: Callable[[Scope], Awaitable[IndexStatus]],
        metrics: IndexerMetrics,
        settler: Settler,
        generation: str,
        clock: Callable[[], float],
    ) -> None:
        """Take what is asked. `clock`: monotonic seconds."""
        self._scopes, self._status, self._metrics = scopes, status, metrics
        self._settler, self._generation, self._clock = settler, generation, clock
        self._behind: dict[Scope, float] = {}
        self._told: set[Scope] = set()

    def told(self, status: IndexStatus, since: float) -> IndexStatus:
        """Add how long the workspace has been behind, in seconds, to a status.

        That is as long as the oldest state waits, by the log (`since`, Unix seconds, 0: unknown), and at least as long
        as this replica has seen some waiting without a break: a file that is edited again and again is never old.
        """
        if not status.pending:
            self._behind.pop(status.scope, None)
            return status
        now = self._clock()
        waited = time.time() - since if since else 0.0
        return replace(status, lag=max(now - self._behind.setdefault(status.scope, now), waited))

    async def run(self) -> None:
        """Set the metrics until cancelled, and take them back then."""
        try:
            while True:
                await asyncio.sleep(_EVERY)
                try:
                    await self.tell()
                except Exception as error:  # noqa: BLE001  (what does not answer now may at the next time)
                    self._settler.failed("report", error)
        finally:
            for scope in self._told:
                self._metrics.forget(scope, self._generation)

    async def tell(self) -> None:
        """Set the metrics now."""
        scopes = set(await self._scopes())
        for scope in self._told - scopes:
            self._metrics.forget(scope, self._generation)
        for scope in scopes:
            self._metrics.tell(await self._status(scope), self._generation)
        self._told = scopes
