"""Group commit: writers of one tenant that come at the same time share one commit, and so one wait for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from memoryd.adapters.embedded.text_index import Change, TextIndex
from memoryd.errors import DeadlineExceededError, MemorydError, ResourceExhaustedError

# Far above what an indexer has in flight; beyond it something is stuck, and callers should know.
_MAX_WAITING = 1_000
_COMMIT_SECONDS = 60.0

_log = structlog.get_logger(__name__)


class GroupCommit:
    """The writes of one tenant. A task commits them and closes the writer after `idle()` seconds without any."""

    def __init__(self, index: TextIndex, threads: ThreadPoolExecutor, idle: Callable[[], float]) -> None:
        self._index = index
        self._threads = threads
        self._idle = idle
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def open(self) -> bool:
        """Whether there is a writer, or will be."""
        return self._task is not None

    async def write(self, change: Change) -> None:
        """Have a change committed, together with whatever else waits.

        Raises DeadlineExceededError where that takes too long; the change may still be committed then.
        """
        if len(self._waiting) >= _MAX_WAITING:
            raise ResourceExhaustedError(f"{_MAX_WAITING} writes wait for the text index already: try again later")
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, committed))
        self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                await committed
        except TimeoutError:
            raise DeadlineExceededError(
                f"the text index took more than {_COMMIT_SECONDS:.0f} s to commit: check the disk, then try again"
            ) from None

    async def close(self) -> None:
        """Commit what waits, then close the writer."""
        self._closing = True
        self._wake.set()
        if self._task:
            await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await self._commit()
            if await self._more():
                continue
            try:
                await loop.run_in_executor(self._threads, self._index.close_writer)
            except MemorydError as error:
                _log.warning("text_merge_failed", error=str(error), exc_info=error)  # nothing committed is lost by it
        self._task = None

    async def _commit(self) -> None:
        group = [(change, committed) for change, committed in self._waiting if not committed.done()]
        self._waiting.clear()
        if not group:
            return
        error: Exception | None = None
        try:
            changes = [change for change, _ in group]
            await asyncio.get_running_loop().run_in_executor(self._threads, self._index.write, changes)
        except Exception as raised:  # noqa: BLE001  (whatever happens, nobody may be left waiting)
            error = raised
        for _, committed in group:
            if committed.done():
                continue  # its caller went away meanwhile
            if error:
                committed.set_exception(error)
            else:
                committed.set_result(None)

    async def _more(self) -> bool:
        """Wait for further writes; False where none come in time."""
        self._wake.clear()
        if not self._waiting and not self._closing:
            try:
                async with asyncio.timeout(self._idle()):
                    await self._wake.wait()
            except TimeoutError:
                pass
        return bool(self._waiting)
