"""Composing: fetches file states, plans them and fills groups, so that small ones overtake large ones."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from memoryd.domain.outlines import Outline
from memoryd.domain.plans import is_old, is_put_again
from memoryd.ports import ChunkStore, Delivery, Manifest
from services.indexer.failures import is_transient
from services.indexer.jobs import Group, Job, Lease, Slice, estimate, vector_key
from services.indexer.prepare import LARGE_BYTES, Preparer
from services.indexer.repair.presence import lost_chunks
from services.indexer.settings import IndexerSettings
from services.indexer.settle import Settler
from services.indexer.vectors import Vectorizer
from services.indexer.waiting import unless

# While work is at hand, a fetch only looks.
_LOOK = 0.01
# While a large file is being chunked beside, a fetch comes back often enough to take it up.
_GLANCE = 0.2
# Weight of the newest fetch in the running estimate of what a file state costs.
_NEWEST = 0.3


class Fetch(Protocol):
    """Leases states, as `FileLog.fetch` does."""

    async def __call__(self, *, limit: int, timeout: float) -> Sequence[Delivery]:
        """Lease up to `limit`, and wait up to `timeout` seconds for the first."""
        ...


class Composer:
    """Makes the next group: fresh states first, with half of the room left to what is begun and unfinished."""

    def __init__(
        self,
        *,
        fetch: Fetch,
        manifest: Manifest,
        stores: Sequence[ChunkStore],
        preparer: Preparer,
        vectors: Vectorizer,
        settler: Settler,
        settings: IndexerSettings,
        clock: Callable[[], float],
    ) -> None:
        self._fetch_states, self._manifest, self._preparer, self._vectors = fetch, manifest, preparer, vectors
        self._settler, self._settings, self._clock = settler, settings, clock
        self._stores = stores
        self._open: deque[Job] = deque()
        self._aside: dict[asyncio.Task[bool], Job] = {}
        self._cost = 0.0

    @property
    def held(self) -> list[Job]:
        """The unfinished jobs that wait here."""
        return [*self._open, *self._aside.values()]

    async def compose(self, stopping: asyncio.Event) -> Group:
        """Fetch, plan and fill; empty where nothing came, or where the stop came first."""
        await self._keep()
        fresh = await self._plan(await unless(stopping, self._fetch()) or [])
        group, bound = Group(), self._vectors.group_tokens
        try:
            await self._fill(group, fresh, bound // 2 if self._open else bound)
            await self._fill(group, self._open, bound)
            await self._fill(group, fresh, bound)
        except Exception as error:  # noqa: BLE001  (the store of the vectors did not answer)
            await self._settler.retry(group.jobs, error, "compose")
        self._open.extend(fresh)
        for piece in group.live:
            await self._analyse(piece)
        return group

    async def release(self) -> None:
        """Give back what waits here."""
        for task, job in self._aside.items():
            task.cancel()
            await self._settler.give_back(job, at_once=True)
        for job in self._open:
            await self._settler.give_back(job, at_once=True)
        self._aside.clear()
        self._open.clear()

    async def _keep(self) -> None:
        """Take up what has been prepared aside, extend leases, drop what has ended."""
        for task in [task for task in self._aside if task.done()]:
            job = self._aside.pop(task)
            if task.result():
                self._open.append(job)
        for job in self.held:
            await self._settler.extend(job)
        self._open = deque(job for job in self._open if not job.settled)

    async def _fetch(self) -> list[Job]:
        affordable = self._vectors.group_tokens / max(self._cost, 1.0)
        limit = int(min(max(affordable / (2 if self._open else 1), 1), self._settings.group_files))
        timeout = _LOOK if self._open else _GLANCE if self._aside else self._settings.fetch_timeout
        deliveries = await self._fetch_states(limit=limit, timeout=timeout)
        return [self._job(delivery) for delivery in deliveries]

    def _job(self, delivery: Delivery) -> Job:
        lease = Lease(delivery, self._settings.lease, self._settings.max_hold, self._clock)
        return Job(delivery, lease)

    async def _plan(self, jobs: list[Job]) -> deque[Job]:
        small: list[Job] = []
        for job in jobs:
            if job.size <= LARGE_BYTES:
                small.append(job)
            elif self.held and sum(held.size for held in self.held) + job.size > self._settings.held_bytes:
                await self._settler.give_back(job, at_once=False)
            else:
                self._aside[asyncio.create_task(self._plan_one(job))] = job
        ready = await asyncio.gather(*map(self._plan_one, small))
        fresh = deque(job for job, is_ready in zip(small, ready, strict=True) if is_ready)
        if jobs:
            cost = sum(estimate(chunk) for job in fresh for chunk in job.plan.born) / len(jobs)
            self._cost += (cost - self._cost) * _NEWEST
        return fresh

    async def _plan_one(self, job: Job) -> bool:
        """Diff a job against its file's current outline; False where that has ended it."""
        try:
            async with asyncio.timeout(self._settings.store_timeout):
                base = await self._manifest.outline(job.key)
            if is_old(job.logged, base):
                await self._settler.ack(job, "old")
                return False
            job.chunked = await self._preparer.chunk(job.logged)
            job.lost = await self._lost(job, base)
            job.plan = await self._preparer.plan(job.logged, base, job.chunked, job.lost)
        except Exception as error:  # noqa: BLE001  (whatever one file does, the others go on)
            await self._end_badly(job, error)
            return False
        return True

    async def _lost(self, job: Job, base: Outline | None) -> frozenset[str]:
        """Look what the stores lack of a file that was put again to be indexed anew."""
        if base is None or not is_put_again(job.logged, base):
            return frozenset()
        async with asyncio.timeout(self._settings.store_timeout):
            return await lost_chunks(base, self._stores)

    async def _end_badly(self, job: Job, error: Exception) -> None:
        if is_transient(error):
            await self._settler.retry([job], error, "compose")
        else:
            await self._settler.blame(job, error, "chunking")

    async def _fill(self, group: Group, jobs: deque[Job], bound: int) -> None:
        """Take slices until about `bound` tokens are to be embedded; known vectors cost nothing."""
        room = self._settings.group_chunks - sum(len(piece.chunks) for piece in group.slices)
        while jobs and group.tokens < bound and room > 0:
            picked: list[Slice] = []
            cost = group.tokens
            while jobs and cost < bound and room > 0:
                piece = jobs[0].take(bound - cost, room)
                picked.append(piece)
                cost += sum(map(estimate, piece.chunks))
                room -= len(piece.chunks)
                if piece.last:
                    jobs.popleft()
            group.slices += picked
            chunks = [chunk for piece in picked for chunk in piece.chunks]
            group.vectors |= await self._vectors.find(chunks)
            group.tokens += sum(estimate(chunk) for chunk in chunks if vector_key(chunk) not in group.vectors)

    async def _analyse(self, piece: Slice) -> None:
        try:
            piece.chunks = await self._preparer.with_terms(piece.chunks)
        except Exception as error:  # noqa: BLE001  (as in planning)
            await self._end_badly(piece.job, error)
