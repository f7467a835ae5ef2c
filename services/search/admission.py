"""Admission: so many searches work at a time, and the others wait in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import Gauge

WAITING = Gauge("memoryd_search_waiting", "Searches that wait for their turn.")


class Admission:
    """Turns for searches: of many that run side by side each takes as long as all of them.

    The server bounds how many can wait (`MEMORYD_GRPC_MAX_CALLS`). Who has waited for as long as it can goes all the
    same: what the others wait for may be a slow dependency, of which this search's own stages say more.
    """

    def __init__(self, at_once: int) -> None:
        self._turns = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def turn(self, patience: float) -> AsyncIterator[None]:
        """Wait for a turn, at most `patience` seconds, and keep it for the body."""
        got = await self._wait(patience)
        try:
            yield
        finally:
            if got:
                self._turns.release()

    async def _wait(self, patience: float) -> bool:
        if not self._turns.locked():
            return await self._turns.acquire()
        with WAITING.track_inprogress():
            try:
                async with asyncio.timeout(patience):
                    return await self._turns.acquire()
            except TimeoutError:
                return False
