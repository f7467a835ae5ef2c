"""Work that several callers want at the same time is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


# Seconds by which ends may differ that are taken for the same: callers overtake each other on their way here.
_SAME = 0.02


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    end: float
    waiting: int = 0


class Flights(Generic[T]):
    """Work by key, while it is being done.

    It goes on while somebody waits for it, also when the first caller has gone, and ends when nobody does.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def run(self, key: Hashable, end: float, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Wait for the work under a key; begin it, to be done by `end`, where it is not being done.

        Returns its result, and whether another caller began it. Who has less time than that one works alone.
        """
        flight = self._flights.get(key)
        if flight is not None and flight.end > end + _SAME:
            return await work(), False
        shared = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(_done(work)), end)
            flight.task.add_done_callback(partial(self._landed, key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task), shared
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                self._leave(key, flight)
                flight.task.cancel()

    def _leave(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    def _landed(self, key: Hashable, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._leave(key, flight)
        if not task.cancelled():
            task.exception()  # looked at, should nobody wait any more


async def _done(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
