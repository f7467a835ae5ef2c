"""The registry of generations in memory."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from memoryd.domain.generations import Generation, Progress
from memoryd.errors import ConflictError
from memoryd.ports import Current, Registry


class MemoryGenerations:
    """Records of generations with compare-and-set."""

    def __init__(self) -> None:
        self._records: dict[str, Generation] = {}
        self._progress: dict[str, Progress] = {}
        self._current, self._sequence = Current(), 0
        self._changed = asyncio.Event()

    async def read(self) -> Registry:
        found = sorted(self._records.values(), key=lambda each: (each.created, each.id))
        return Registry(self._current, tuple(found), self._sequence)

    async def put(self, generation: Generation) -> Generation:
        self._check(generation)
        kept = self._records[generation.id] = replace(generation, entry=self._next())
        return kept

    async def remove(self, generation: Generation) -> None:
        self._check(generation)
        self._next()
        del self._records[generation.id]
        self._progress.pop(generation.id, None)

    async def move(self, to: str, *, wanted: str, expected: Current) -> Current:
        if self._current.entry != expected.entry:
            raise ConflictError("the current generation changed meanwhile")
        self._current = Current(to, wanted, self._next())
        return self._current

    async def wait(self, after: int, timeout: float) -> int:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._sequence <= after:
                    await self._changed.wait()
        return self._sequence

    async def report(self, generation_id: str, progress: Progress) -> None:
        self._progress[generation_id] = progress

    async def progress(self, generation_id: str) -> Progress | None:
        return self._progress.get(generation_id)

    async def close(self) -> None:
        return

    def _check(self, generation: Generation) -> None:
        known = self._records.get(generation.id)
        if (known.entry if known else 0) != generation.entry:
            raise ConflictError("the record changed meanwhile")

    def _next(self) -> int:
        self._sequence += 1
        self._changed.set()
        self._changed = asyncio.Event()
        return self._sequence
