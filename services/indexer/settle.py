"""Settling: how each delivery ends. Nothing is acknowledged before its outline is committed."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace

import structlog

from memoryd.domain.files import FileKey, Problem, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.plans import POISON, is_old, set_aside
from memoryd.errors import STORE_LOST, ConflictError, MemorydError
from memoryd.ports import IndexFailure, Manifest
from services.indexer.failures import backoff, is_transient, reason_of
from services.indexer.jobs import Job, LeaseLostError
from services.indexer.metrics import IndexerMetrics
from services.indexer.settings import IndexerSettings

# Files whose permanent failures are remembered; a forgotten one is only tried some more times, as is one that several
# replicas take turns at. A delivery's attempt is no count of them: it has the dependencies' outages in it.
_REMEMBERED = 1024
# A lost compare-and-set: somebody has just made progress, so look again at once.
_AFTER_CONFLICT = 0.05
_GIVE_BACK = 5.0
# While everything fails: how long nothing is taken in, and how late a live edit may be once it does not any more.
_LONGEST_PAUSE = 5.0

_log = structlog.get_logger(__name__)


class Settler:
    """Ends jobs, and remembers failures: those in a row brake the intake, those of one file set it aside."""

    def __init__(self, manifest: Manifest, settings: IndexerSettings, metrics: IndexerMetrics) -> None:
        self._manifest, self._settings, self._metrics = manifest, settings, metrics
        self._failures: OrderedDict[tuple[FileKey, Revision], int] = OrderedDict()
        self._in_a_row = 0
        self._next_end = asyncio.Event()
        self._last_failures: dict[Scope | None, IndexFailure] = {}  # None: of no workspace alone
        self.store_lost = asyncio.Event()  # set where a store has lost what it held

    def pause(self, failures: int = 0) -> float:
        """Seconds to wait before more is taken in: 0, or a backoff while all fails or `failures` fetches did."""
        in_a_row = max(self._in_a_row, failures)
        cap = min(self._settings.retry_cap, _LONGEST_PAUSE)
        return backoff(in_a_row, self._settings.retry_base, cap) if in_a_row else 0.0

    @property
    def next_end(self) -> asyncio.Event:
        """Set when the next job ends."""
        return self._next_end

    def last_failure(self, scope: Scope) -> IndexFailure | None:
        """Tell what went wrong last with a workspace, or with all; None: nothing."""
        found = [self._last_failures[each] for each in (scope, None) if each in self._last_failures]
        failure = max(found, key=lambda each: each.at, default=None)
        return failure if failure is None or self._in_a_row else replace(failure, ongoing=False)

    def failed(self, stage: str, error: BaseException, scopes: Collection[Scope] = ()) -> None:
        """Count and log a failure, of some workspaces or of all."""
        if reason_of(error) == STORE_LOST:
            self.store_lost.set()
        self._metrics.failures.labels(stage, reason_of(error)).inc()
        detail = str(error) if isinstance(error, MemorydError) else ""
        failure = IndexFailure(stage, reason_of(error), detail, time.time(), ongoing=True)
        concerned: Collection[Scope | None] = scopes or (None,)
        self._last_failures |= dict.fromkeys(concerned, failure)
        unexpected = None if detail or is_transient(error) else error
        _log.warning("indexing failed", stage=stage, reason=reason_of(error), detail=detail, exc_info=unexpected)

    async def ack(self, job: Job, outcome: str) -> None:
        """End a job whose outline is committed, or that has nothing to commit."""
        self._in_a_row = 0
        self._failures.pop((job.key, job.logged.revision), None)
        await self._end(job, outcome, None)

    async def retry(self, jobs: Collection[Job], error: BaseException, stage: str) -> None:
        """Have jobs delivered again, as often as it takes, after a failure that they are not to blame for."""
        self.failed(stage, error, {job.key.scope for job in jobs})
        self._in_a_row += 1
        for job in jobs:
            delay = backoff(job.delivery.attempt, self._settings.retry_base, self._settings.retry_cap)
            await self._end(job, "retried", delay)

    async def conflict(self, job: Job) -> None:
        """Have a job delivered again whose compare-and-set was lost: the whole plan is made anew from what is now."""
        await self._end(job, "conflict", backoff(1, _AFTER_CONFLICT, _AFTER_CONFLICT))

    async def give_back(self, job: Job, *, at_once: bool) -> None:
        """Have a job delivered again that there is no room or no time for."""
        await self._end(job, "given_back", 0.0 if at_once else backoff(1, _GIVE_BACK, _GIVE_BACK))

    async def extend(self, job: Job) -> None:
        """Extend a job's lease where it needs it; a job whose lease is lost is abandoned."""
        try:
            await job.lease.extend()
        except LeaseLostError:
            self.abandon(job)
        except Exception as error:  # noqa: BLE001  (the deadline stays as it was)
            self.failed("lease", error, {job.key.scope})

    def abandon(self, job: Job) -> None:
        """Drop a job whose lease is lost: the file log delivers it again by itself."""
        if not job.settled:
            job.settled = True
            self._metrics.files.labels("abandoned").inc()

    async def blame(self, job: Job, error: BaseException, stage: str) -> None:
        """Count a failure that the file itself causes; after some, set its newest state aside."""
        self.failed(stage, error, {job.key.scope})
        name = (job.key, job.logged.revision)
        count = self._failures[name] = self._failures.pop(name, 0) + 1
        if len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)
        if count < self._settings.poison_after:
            await self._end(job, "retried", backoff(count, self._settings.retry_base, self._settings.retry_cap))
            return
        detail = f"{stage} failed {count} times ({reason_of(error)}): change the file to have it tried again"
        await self._quarantine(job, Problem(POISON, detail))

    async def _quarantine(self, job: Job, problem: Problem) -> None:
        try:
            await job.lease.extend()
            async with asyncio.timeout(job.lease.remaining):
                base: Outline | None = await self._manifest.outline(job.key)
                if not is_old(job.logged, base):
                    await self._manifest.commit(set_aside(job.logged, base, problem, job.lost))
        except ConflictError:
            await self.conflict(job)
        except LeaseLostError:
            self.abandon(job)
        except Exception as error:  # noqa: BLE001  (whatever a dependency does, the job must end)
            await self.retry([job], error, "quarantine")
        else:
            await self.ack(job, "quarantined")

    async def _end(self, job: Job, outcome: str, delay: float | None) -> None:
        if delay is not None and job.lease.remaining <= 0:
            self.abandon(job)
        if job.settled:
            return
        job.settled = True
        self._metrics.files.labels(outcome).inc()
        try:
            await (job.delivery.ack() if delay is None else job.delivery.retry(delay))
        except Exception as error:  # noqa: BLE001  (then the lease runs out, and the state is delivered again)
            self.failed("settle", error, {job.key.scope})
        self._next_end.set()
        self._next_end = asyncio.Event()
