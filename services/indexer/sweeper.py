"""The sweeper: deletes the chunks that no outline lists any more, from both stores, after a grace time.

A chunk left by an indexer that crashed is found by the repair job, which looks over everything. It decides by
`Outline.collectable` alone; a file without an outline is never touched. The grace is for searches in flight and for
renames, whose vectors are found in the old chunks; safety does not depend on it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile

from memoryd.domain.chunks import ChunkRef
from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.sealing import find
from memoryd.ports import ChunkStore, Manifest
from services.indexer.failures import backoff
from services.indexer.metrics import IndexerMetrics
from services.indexer.settings import IndexerSettings
from services.indexer.settle import Settler

# What is remembered at most; the sweep over everything finds what was forgotten.
_FILES = 100_000
_CHUNKS = 500_000
# Files swept at a time, so that they share one delete a store.
_BATCH = 64


class Sweeper:
    """Collects by queue, after commits, and by interval, over everything."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        stores: Sequence[ChunkStore],
        settings: IndexerSettings,
        metrics: IndexerMetrics,
        settler: Settler,
        clock: Callable[[], float],
    ) -> None:
        self._manifest, self._stores, self._settings = manifest, stores, settings
        self._metrics, self._settler, self._clock = metrics, settler, clock
        # Both in about the order of their times, as the grace is the same for all.
        self._due: OrderedDict[FileKey, float] = OrderedDict()
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._woken = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def unlisted(self, key: FileKey, dropped: Iterable[str], *, look: bool = False) -> None:
        """Queue a file whose newest outline has just been committed and has dropped chunks.

        `look`: queue it even so, because an earlier attempt may have left chunks behind.
        """
        now = self._clock()
        dropped = list(dropped)
        for name in dropped:
            self._seen.setdefault(name, now)
        self._forget(now)
        if (dropped or look) and len(self._due) < _FILES:
            if not self._due:
                self._woken.set()
            self._due.setdefault(key, now + self._settings.grace)

    def wake(self) -> None:
        """Look now for what is due."""
        self._woken.set()

    async def run(self) -> None:
        """Sweep what is queued until cancelled; the repair job queues what an earlier process has left."""
        failures = 0
        while True:
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001  (a store that does not answer ends no sweeper)
                failures += 1
                self._settler.failed("sweep", error)
                await asyncio.sleep(backoff(failures, self._settings.retry_base, self._settings.retry_cap))
            else:
                failures = 0
                later = self._clock() + self._settings.sweep_interval
                await self._sleep(min(later, next(iter(self._due.values()), later)) - self._clock())

    async def sweep(self) -> int:
        """Sweep the queued files whose grace has passed; returns how many chunks were deleted.

        Where a store fails, the files stay in the queue. A sweep already at work is waited for: it has taken files out
        of the queue whose chunks are still there.
        """
        collected = 0
        async with self._one_at_a_time:
            while due := list(takewhile(lambda entry: entry[1] <= self._clock(), islice(self._due.items(), _BATCH))):
                for key, _ in due:  # taken out first: what is committed meanwhile queues its file anew
                    del self._due[key]
                try:
                    collected += await self._sweep_files([key for key, _ in due])
                except BaseException:
                    self._due = OrderedDict(due) | self._due
                    raise
        return collected

    async def _sweep_files(self, keys: Sequence[FileKey]) -> int:
        condemned: dict[Scope, set[str]] = {}
        for key in keys:
            async with asyncio.timeout(self._settings.store_timeout):
                condemned.setdefault(key.scope, set()).update(await self._condemn(key))
        for scope, ids in condemned.items():
            async with asyncio.timeout(self._settings.store_timeout):
                await self._delete(scope, sorted(ids))
        return sum(map(len, condemned.values()))

    async def look_over(self) -> None:
        """Look over all workspaces for chunks that no outline lists, and queue their files."""
        for scope in await self._manifest.scopes():
            outlines = (await self._manifest.view(scope)).outlines
            listed = {name for outline in outlines.values() for name in outline.by_id}
            for store in self._stores:
                async with asyncio.timeout(self._settings.store_timeout) as limit:
                    async for page in store.scan(scope, known=listed):
                        self._queue(page, outlines)
                        limit.reschedule(asyncio.get_running_loop().time() + self._settings.store_timeout)

    def _queue(self, page: Sequence[ChunkRef], outlines: Mapping[str, Outline]) -> None:
        for chunk in page:
            outline = find(outlines, chunk.path)
            if outline is not None and outline.collectable(chunk):
                self.unlisted(FileKey(outline.key.scope, chunk.path), [chunk.id])

    async def _condemn(self, key: FileKey) -> list[str]:
        """List what may be deleted of one file now; where some of it is too young, queue the file again."""
        outline = await self._manifest.outline(key)
        if outline is None:
            return []
        now, old = self._clock(), []
        for store in self._stores:
            async for page in store.scan(key.scope, key.path):
                for chunk in page:
                    if not outline.collectable(chunk):
                        continue
                    due = self._seen.setdefault(chunk.id, now) + self._settings.grace
                    if due <= now:
                        old.append(chunk.id)
                    else:
                        self._due[key] = min(due, self._due.get(key, due))
        return old

    async def _delete(self, scope: Scope, ids: Sequence[str]) -> None:
        if not ids:
            return
        for store in self._stores:
            await store.delete(scope, ids)
        for name in ids:
            self._seen.pop(name, None)
        self._metrics.collected.inc(len(ids))

    def _forget(self, now: float) -> None:
        """Forget what was seen long ago: another sweeper has deleted it, or the sweep over everything sees it again."""
        horizon = now - 4 * self._settings.grace - self._settings.sweep_interval
        while self._seen and (len(self._seen) > _CHUNKS or next(iter(self._seen.values())) < horizon):
            self._seen.popitem(last=False)

    async def _sleep(self, seconds: float) -> None:
        self._woken.clear()
        with suppress(TimeoutError):  # not wait_for: before Python 3.12 it can swallow a cancellation
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._woken.wait()
