"""How far generations are."""

from __future__ import annotations

import time
from dataclasses import replace

from prometheus_client import Gauge

from memoryd.domain.generations import Progress
from memoryd.ports import FileLog, Generations
from services.indexer.generation import IndexedGeneration

PENDING = Gauge("memoryd_generation_pending_files", "Files that a generation has yet to take in.", ["generation"])
CHUNKS = Gauge("memoryd_generation_chunks", "Chunks that a generation holds.", ["generation"])

# Seconds after which files are counted anew, and after which a report is repeated that has not changed.
_COUNT_AGAIN, _REPORT_AGAIN = 60.0, 10.0
# Seconds after which chunks are counted anew while files come in: that takes 2 ms for 20,000 chunks, under the GIL.
_COUNT_CHUNKS_AGAIN = 5.0


class Measure:
    """Measures generations and reports it to the registry."""

    def __init__(self, log: FileLog, registry: Generations) -> None:
        self._log, self._registry = log, registry
        self._files, self._counted = 0, float("-inf")
        self._began: dict[str, tuple[float, int]] = {}
        self._reported: dict[str, Progress] = {}
        self._chunks: dict[str, tuple[float, int, int]] = {}

    async def measure(self, generation: IndexedGeneration) -> Progress:
        """Measure one; the registry is told where it has changed."""
        name = generation.parts.generation.id
        pending = 0
        for scope in await self._log.scopes():
            pending += await self._log.pending(generation.parts.consumer, scope)
        chunks = await self._chunks_of(generation, pending)
        files = await self._count(pending)
        eta = self._eta(name, pending) if generation.started else None
        progress = Progress(files, pending, chunks, eta, generation.problem, time.time())
        PENDING.labels(name).set(pending)
        CHUNKS.labels(name).set(chunks)
        last = self._reported.get(name)
        if (
            last is None
            or progress.at - last.at > _REPORT_AGAIN
            or replace(last, at=progress.at, eta=progress.eta) != progress
        ):
            await self._registry.report(name, progress)
            self._reported[name] = progress
        return progress

    def forget(self, name: str) -> None:
        """Forget a generation that is gone."""
        self._began.pop(name, None)
        self._reported.pop(name, None)
        self._chunks.pop(name, None)
        PENDING.remove(name)
        CHUNKS.remove(name)

    async def _chunks_of(self, generation: IndexedGeneration, pending: int) -> int:
        """Count the chunks, now and then, and once when the last file is in."""
        name, now = generation.parts.generation.id, time.monotonic()
        counted, then, chunks = self._chunks.get(name, (float("-inf"), 0, 0))
        due = _COUNT_CHUNKS_AGAIN if pending else 0.0 if then else _COUNT_AGAIN
        if now - counted >= due:
            chunks = await generation.parts.vectors.count()
            self._chunks[name] = now, pending, chunks
        return chunks

    async def _count(self, pending: int) -> int:
        """Count the states of the file log, now and then: a count reads all of them, without their content."""
        now = time.monotonic()
        if pending > self._files or now - self._counted > _COUNT_AGAIN:
            self._files, self._counted = 0, now
            for scope in await self._log.scopes():
                async for _ in self._log.scan(scope):
                    self._files += 1
        return max(self._files, pending)

    def _eta(self, name: str, pending: int) -> float | None:
        """Tell from the speed since this process began, in seconds; None where there is none yet."""
        now = time.monotonic()
        if not pending:
            self._began.pop(name, None)
            return 0.0
        since, then = self._began.setdefault(name, (now, pending))
        done = then - pending
        return pending * (now - since) / done if done > 0 else None
