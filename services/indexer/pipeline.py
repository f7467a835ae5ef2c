"""The pipeline: while one group is written, the next are embedded and the one after them is composed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from memoryd import tracing
from services.indexer.compose import Composer
from services.indexer.embed import EmbedStage
from services.indexer.jobs import Group
from services.indexer.metrics import IndexerMetrics
from services.indexer.settle import Settler
from services.indexer.throttle import Throttle
from services.indexer.waiting import unless
from services.indexer.write import WriteStage

# Groups between embedding and writing. Before embedding none waits: it is composed as late as possible, so that a live
# edit finds room in it.
_EMBEDDED = 1
# Groups of an import that are embedded at a time. With one, the embedder's threads wait for one another at its end and
# for the next one's beginning (6 % of their time on two cores), and batches have fewer texts to be packed from.
_AT_A_TIME = 2


class Pipeline:
    """Three stages and the hand-overs between them.

    There are two, one for live states and one for all others: an edit waits for no group of an import.
    """

    def __init__(
        self,
        *,
        composer: Composer,
        embed: EmbedStage,
        write: WriteStage,
        settler: Settler,
        metrics: IndexerMetrics,
        throttle: Throttle,
        live: bool,
    ) -> None:
        self._composer, self._embed, self._write = composer, embed, write
        self._settler, self._metrics, self._throttle = settler, metrics, throttle
        self._stopping = asyncio.Event()
        self._room = asyncio.Semaphore(1)
        self._composed: asyncio.Queue[Group | None] = asyncio.Queue(1)
        self._slots = asyncio.Semaphore(1 if live else _AT_A_TIME)
        self._embedded: asyncio.Queue[tuple[Group, asyncio.Task[None]] | None] = asyncio.Queue(_EMBEDDED)

    def stop(self) -> None:
        """Take in no more; `run` returns when what is in work is written."""
        self._stopping.set()

    async def run(self) -> None:
        """Index until stopped. What is not written when this is cancelled is delivered again."""
        async with asyncio.TaskGroup() as stages:
            stages.create_task(self._composing())
            stages.create_task(self._embedding(stages))
            stages.create_task(self._writing())

    async def _composing(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            await unless(self._stopping, asyncio.sleep(self._settler.pause(failures)))
            await unless(self._stopping, self._throttle.rest())
            await self._room.acquire()
            try:
                with self._metrics.seconds.labels("compose").time():
                    group = await self._composer.compose(self._stopping)
                failures = 0
            except Exception as error:  # noqa: BLE001  (the file log does not answer, in whatever way)
                self._settler.failed("fetch", error)
                failures, group = failures + 1, Group()
            if group.live:
                group.span = tracing.open_span(
                    "indexer.group", files=len(group.jobs), chunks=len(group.chunks), tokens=group.tokens
                )
                await self._composed.put(group)
            else:
                self._room.release()
        await self._composer.release()
        await self._composed.put(None)

    async def _embedding(self, stages: asyncio.TaskGroup) -> None:
        while (group := await self._composed.get()) is not None:
            await self._slots.acquire()
            self._room.release()
            embedding = stages.create_task(self._embed_one(group))
            await self._embedded.put((group, embedding))
            if self._throttle.share < 1:  # who is to leave time to others does one thing after another
                await embedding
        await self._embedded.put(None)

    async def _embed_one(self, group: Group) -> None:
        await self._do("embed", self._embed.run, group)
        self._slots.release()

    async def _writing(self) -> None:
        """Write groups in the order in which they were composed: a large file commits with its last one."""
        while (next_one := await self._embedded.get()) is not None:
            group, embedding = next_one
            await embedding
            await self._do("write", self._write.run, group)
            if group.span:
                group.span.end()

    async def _do(self, name: str, stage: Callable[[Group], Awaitable[None]], group: Group) -> None:
        with (
            self._metrics.seconds.labels(name).time(),
            self._throttle.working(),
            group.span.within() if group.span else nullcontext(),
            tracing.span(f"indexer.{name}", files=len(group.jobs)) as span,
        ):
            try:
                await stage(group)
            except Exception as error:  # noqa: BLE001  (a stage ends jobs itself; a fault of its own ends no pipeline)
                span.failed(type(error).__name__)
                await self._settler.retry(group.jobs, error, name)
