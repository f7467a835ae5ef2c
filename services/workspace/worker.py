"""Keeping one workspace in line with its folder."""

from __future__ import annotations

import asyncio
import random
import time

import structlog

from memoryd.domain.files import Problem
from memoryd.folder.root import RootMissingError
from services.workspace.metrics import RECONCILED, ROOTS_MISSING
from services.workspace.reconcile import Reconciler
from services.workspace.settings import WorkspaceServiceSettings

_LOGGER = structlog.get_logger(__name__)
_MOST_TOUCHED = 10_000  # paths kept; beyond them the whole folder is read again
_PASS = 1.0  # seconds, at least, that a bulk of changes is worked on before edits that have come are looked at
_FIRST_PAUSE = 0.5  # seconds before the first new try; doubled each time
_LONGEST_PAUSE = 60.0


class Worker:
    """Reconciles one workspace: when it is told of changes, by interval, and when asked.

    Attributes:
        problem: why the last reconcile could conclude nothing about the folder's files; None where it could.
        reconciled: when all files were last read and compared, Unix seconds; 0: not yet.
    """

    def __init__(self, reconciler: Reconciler, settings: WorkspaceServiceSettings, slots: asyncio.Semaphore) -> None:
        self._scope, self._root = reconciler.scope, reconciler.root
        self._interval = settings.reconcile_seconds
        self._slots = slots
        self._lock = asyncio.Lock()
        self._coming: asyncio.Task[int] | None = None  # a full reconcile that was asked for and has not begun
        self._syncs: set[asyncio.Task[int]] = set()
        self._reconciler = reconciler
        self._changed = asyncio.Event()
        self._touched: set[str] = set()
        self._reload = True
        self.problem: Problem | None = None
        self.reconciled = 0.0

    def mark(self, paths: frozenset[str]) -> None:
        """Have the folder reconciled soon; `paths` are known to have changed."""
        self._touched |= paths
        if len(self._touched) > _MOST_TOUCHED:
            self._touched.clear()
            self._reconciler.forget()
        self._changed.set()

    async def reconcile(self, *, full: bool = False, live: bool = False) -> int:
        """Reconcile now, after one that runs; returns how many states were put.

        Raises RootMissingError, which is also reported as an alarm, and what the file log raises.

        Args:
            full: read every file, whatever its status says.
            live: somebody is editing.
        """
        async with self._lock, self._slots:
            return await self._reconcile(full=full, live=live)

    async def sync(self) -> int:
        """Read every file, in a run that begins after this call; callers before it begins share it.

        Returns how many states it put; raises as `reconcile` does. It goes on where nobody waits any more.
        """
        if self._coming is None:
            self._coming = asyncio.create_task(self._sync(), name=f"sync {self._scope}")
            self._syncs.add(self._coming)
            self._coming.add_done_callback(self._synced)
        return await asyncio.shield(self._coming)

    async def _sync(self) -> int:
        async with self._lock, self._slots:
            self._coming = None  # who comes from now on may have changed a file that is read already
            return await self._reconcile(full=True, live=True)

    def _synced(self, task: asyncio.Task[int]) -> None:
        self._syncs.discard(task)
        if self._coming is task:
            self._coming = None
        if not task.cancelled():
            task.exception()  # looked at, should nobody wait any more

    async def _reconcile(self, *, full: bool, live: bool) -> int:
        if full:
            self._reconciler.forget()
        began = time.monotonic()
        put = await self._pass(reload=full, live=live)
        while self._reconciler.unfinished:  # an edit has come between
            put += await self._pass(reload=False, live=True)
        if full or not self.reconciled:  # the first one knows no file yet, so it reads all
            self.reconciled = time.time()
            RECONCILED.labels(self._scope.tenant, self._scope.workspace).set(self.reconciled)
        if put:
            seconds = round(time.monotonic() - began, 3)
            _LOGGER.info("folder reconciled", scope=str(self._scope), states_put=put, seconds=seconds)
        return put

    async def _pass(self, *, reload: bool, live: bool) -> int:
        """Reconcile, but for a bulk of changes only until others come; those are first in the next pass."""
        self._changed.clear()
        touched, self._touched = frozenset(self._touched), set()
        end = time.monotonic() + _PASS

        def pressing() -> bool:
            return bool(self._touched) and time.monotonic() >= end

        try:
            put = await self._reconciler.reconcile(touched, reload=self._reload or reload, live=live, pressing=pressing)
        except BaseException as error:
            self._reload = True
            self._touched |= touched
            if isinstance(error, RootMissingError):
                self._alarm(error.problem)
            else:
                self._changed.set()
            raise
        self._reload = False
        self._alarm(None)
        return put

    async def run(self) -> None:
        """Reconcile until cancelled. No error ends it: it tries again, later and later."""
        failures, due = 0, self._next_full()
        while True:
            try:
                told = await self._wait(due)
                full = not told or time.monotonic() >= due  # the latter where changes never cease
                if full:
                    due = self._next_full()
                await self.reconcile(full=full, live=told)
                failures = 0
            except RootMissingError:
                failures = 0  # the watcher tells when it is back
            except Exception:  # whatever a log or a disk does, the next change must be seen
                failures += 1
                _LOGGER.warning(
                    "reconcile failed; trying again", scope=str(self._scope), failures=failures, exc_info=True
                )
                longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 10))
                await asyncio.sleep(longest * random.uniform(0.5, 1))  # noqa: S311  (jitter)

    def _next_full(self) -> float:
        """Say when every file is to be read again, by the monotonic clock."""
        return time.monotonic() + self._interval * random.uniform(0.9, 1.1)  # noqa: S311  (jitter)

    async def _wait(self, due: float) -> bool:
        """Wait for changes, or for the next full reconcile to be due; tells whether there are changes."""
        try:
            async with asyncio.timeout(max(due - time.monotonic(), 0)):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """End what was asked for, and take back the alarm."""
        for task in self._syncs:
            task.cancel()
        await asyncio.gather(*self._syncs, return_exceptions=True)
        self._alarm(None)

    def _alarm(self, problem: Problem | None) -> None:
        if problem is not None and self.problem is None:
            ROOTS_MISSING.inc()
            _LOGGER.error(problem.detail, scope=str(self._scope), folder=str(self._root))
        if problem is None and self.problem is not None:
            ROOTS_MISSING.dec()
            _LOGGER.info("the workspace's folder is back", scope=str(self._scope), folder=str(self._root))
        self.problem = problem
