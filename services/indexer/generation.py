"""One generation in this process: its parts, and the indexer that keeps it up to date as long as its model answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from memoryd.errors import UnavailableError
from memoryd.generations.parts import Parts
from services.indexer.failures import backoff
from services.indexer.service import Indexer

# Delays between attempts to start an indexer whose model is away.
_FIRST, _LONGEST = 0.5, 5.0

_log = structlog.get_logger(__name__)


class Failure:
    """What ended the indexing of a generation, other than a stop: the process can't go on as if nothing were."""

    def __init__(self) -> None:
        self._came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self, error: BaseException) -> None:
        """Note the first one."""
        if not self._came.done():
            self._came.set_exception(error)

    async def wait(self) -> None:
        """Wait for it, and raise it."""
        await asyncio.shield(self._came)


class IndexedGeneration:
    """A generation at work. It is in use from `start` on; until its model answers, what comes stays pending."""

    def __init__(self, parts: Parts, indexer: Indexer) -> None:
        self.parts, self.indexer = parts, indexer
        self.started = False
        self.problem = ""

    async def start(self) -> None:
        """Begin to index, if the model answers now."""
        try:
            await self.indexer.start()
        except UnavailableError as error:
            if not self.problem:
                _log.warning("a generation takes in nothing", generation=self.parts.generation.id, error=str(error))
            self.problem = f"its model {self.parts.generation.model.name} does not answer ({error.reason})"
        else:
            self.started, self.problem = True, ""

    async def run(self, failure: Failure) -> None:
        """Begin as soon as the model answers, and watch over it."""
        attempts = 0
        while not self.started:
            attempts += 1
            await asyncio.sleep(backoff(attempts, _FIRST, _LONGEST))
            await self.start()
        try:
            await self.indexer.closed()
        except Exception as error:  # noqa: BLE001  (whatever it was, the process has to end by it)
            failure.set(error)


@asynccontextmanager
async def indexed(parts: Parts, indexer: Indexer, failure: Failure, drain: float) -> AsyncIterator[IndexedGeneration]:
    """Index a generation until the context ends; then what is in work has `drain` seconds."""
    generation = IndexedGeneration(parts, indexer)
    await generation.start()
    watching = asyncio.create_task(generation.run(failure), name=f"indexing generation {parts.generation.id}")
    try:
        yield generation
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await indexer.stop(drain)
