"""The writing stage: both stores, then the outlines one by one, then the acknowledgements."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memoryd.domain.chunks import Chunk
from memoryd.errors import ConflictError, InvalidInputError
from memoryd.ports import EmbeddedChunk, Manifest, TextStore, VectorStore
from services.indexer.jobs import Group, Job, LeaseLostError, vector_key
from services.indexer.metrics import IndexerMetrics
from services.indexer.settings import IndexerSettings
from services.indexer.settle import Settler
from services.indexer.sweeper import Sweeper

# Outlines put at a time, so that an engine can share one sync among them.
_COMMITS = 64


class WriteStage:
    """Writes groups. Each write is preceded by a look at the leases and ends before they do."""

    def __init__(
        self,
        *,
        vectors: VectorStore,
        texts: TextStore,
        manifest: Manifest,
        sweeper: Sweeper,
        settler: Settler,
        settings: IndexerSettings,
        metrics: IndexerMetrics,
    ) -> None:
        self._vectors, self._texts, self._manifest, self._sweeper = vectors, texts, manifest, sweeper
        self._settler, self._settings, self._metrics = settler, settings, metrics

    async def run(self, group: Group) -> None:
        """Write a group's chunks to both stores, commit the jobs that are complete with it, acknowledge them."""
        await self._upsert(group)
        complete = [piece.job for piece in group.live if piece.last]
        for begin in range(0, len(complete), _COMMITS):
            await asyncio.gather(*map(self._commit, complete[begin : begin + _COMMITS]))

    async def _upsert(self, group: Group) -> None:
        for job in group.jobs:
            await self._settler.extend(job)
        jobs, chunks = group.jobs, group.chunks
        if not chunks:
            return
        pairs = [(chunk, group.vectors[vector_key(chunk)]) for chunk in chunks]
        embedded = [EmbeddedChunk(chunk, found.vector, found.sketch) for chunk, found in pairs]
        try:
            await self._both(jobs, embedded, chunks)
        except InvalidInputError as error:
            await self._isolate(group, jobs, error)
        except Exception as error:  # noqa: BLE001  (a store that does not answer, in whatever way)
            await self._settler.retry(jobs, error, "write")
        else:
            self._metrics.chunks.inc(len(chunks))

    async def _isolate(self, group: Group, jobs: Sequence[Job], error: InvalidInputError) -> None:
        if len(jobs) == 1:
            await self._settler.blame(jobs[0], error, "writing")
            return
        for job in jobs:
            await self._upsert(group.of([job]))

    async def _both(self, jobs: Sequence[Job], embedded: Sequence[EmbeddedChunk], chunks: Sequence[Chunk]) -> None:
        """Write to both stores at a time; the first failure is raised when both have ended."""
        patience = min(self._settings.store_timeout, *(job.lease.remaining for job in jobs))
        if patience <= 0:
            raise TimeoutError
        async with asyncio.timeout(patience):
            results = await asyncio.gather(
                self._vectors.upsert(embedded), self._texts.upsert(chunks), return_exceptions=True
            )
        for result in results:
            if result is not None:
                raise result

    async def _commit(self, job: Job) -> None:
        plan = job.plan
        try:
            await job.lease.extend()
            if plan.changed:
                async with asyncio.timeout(min(self._settings.store_timeout, job.lease.remaining)):
                    await self._manifest.commit(plan.outline)
        except ConflictError:
            # Where a later state has won, this one is not delivered again, and nobody else looks for its chunks.
            self._sweeper.unlisted(job.key, (), look=True)
            await self._settler.conflict(job)
        except LeaseLostError:
            self._settler.abandon(job)
        except Exception as error:  # noqa: BLE001  (a manifest that does not answer, in whatever way)
            await self._settler.retry([job], error, "commit")
        else:
            self._sweeper.unlisted(job.key, plan.dropped, look=job.delivery.attempt > 1)
            await self._settler.ack(job, _outcome(job))


def _outcome(job: Job) -> str:
    outline = job.plan.outline
    if outline.problem is not None:
        return "quarantined"
    if outline.deleted:
        return "deleted"
    return "indexed" if job.plan.changed else "unchanged"
