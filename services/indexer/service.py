"""The indexer's use cases: keep the indexes equal to the file log, and tell what is indexed."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import structlog

from memoryd.domain.chunking import Limits
from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.purges import PurgeOrder, PurgeReceipt
from memoryd.domain.repairs import Checkup
from memoryd.errors import ConflictError, DeadlineExceededError, MemorydError, UnavailableError
from memoryd.ports import (
    Embedder,
    FileLog,
    FileWarning,
    IndexStatus,
    Maintenance,
    Manifest,
    PartProbe,
    QuarantinedFile,
    TextStore,
    VectorStore,
    Workspace,
)
from services.indexer.compose import Composer
from services.indexer.embed import EmbedStage
from services.indexer.kin import Others
from services.indexer.metrics import IndexerMetrics, default_metrics
from services.indexer.pipeline import Pipeline
from services.indexer.prepare import Preparer
from services.indexer.probe import Prober
from services.indexer.repair.inspect import Inspector
from services.indexer.repair.mend import Mender
from services.indexer.repair.purge import Purger
from services.indexer.repair.repairer import Repairer
from services.indexer.reporting import Reporter
from services.indexer.settings import IndexerSettings
from services.indexer.settle import Settler
from services.indexer.sweeper import Sweeper
from services.indexer.throttle import Throttle
from services.indexer.vectors import Vectorizer
from services.indexer.write import WriteStage

# Other replicas settle states, too: look again even where nothing ended here.
_LOOK_AGAIN = 1.0
# For tasks to end that were cancelled.
_LAST_WAIT = 5.0
# Counting costs a little: no more often than this, after something has ended.
_REPORT_EVERY = 0.1

_log = structlog.get_logger(__name__)


class Indexer(Maintenance):
    """One replica of the indexer, of one generation.

    Args:
        log: the file log.
        manifest: the outlines.
        vectors: the vector store.
        texts: the text store.
        embedder: the generation's model.
        settings: see `IndexerSettings`.
        workspace: compares the folders with the file log; None where no folder is reached from here.
        disk_bytes: measures the indexes; None where they are elsewhere.
        metrics: None for those of the process.
        throttle: leaves time to others while an import runs; None for none.
        forget: drops what is kept in memory of a workspace's texts when they are purged, beside what is kept here.
        others: tells further stores in which vectors of texts may be found.
        clock: monotonic seconds.
    """

    def __init__(  # noqa: PLR0913  (a use case names its ports one by one)
        self,
        *,
        log: FileLog,
        manifest: Manifest,
        vectors: VectorStore,
        texts: TextStore,
        embedder: Embedder,
        settings: IndexerSettings,
        workspace: Workspace | None = None,
        disk_bytes: Callable[[], Awaitable[int]] | None = None,
        metrics: IndexerMetrics | None = None,
        throttle: Throttle | None = None,
        forget: Callable[[Scope], None] | None = None,
        others: Others = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._manifest, self._vectors, self._texts = log, manifest, vectors, texts
        self._embedder, self._settings, self._workspace = embedder, settings, workspace
        self._disk_bytes, self._clock, self._forget = disk_bytes, clock, forget
        self._metrics = metrics or default_metrics()
        self.throttle = throttle or Throttle()
        self._settler = Settler(manifest, settings, self._metrics)
        self.sweeper = Sweeper(
            manifest=manifest,
            stores=(vectors, texts),
            settings=settings,
            metrics=self._metrics,
            settler=self._settler,
            clock=clock,
        )
        self.repairer = self._build_repairer()
        self.reporter = Reporter(
            scopes=self.repairer.scopes,
            status=self.status,
            metrics=self._metrics,
            settler=self._settler,
            generation=settings.consumer.rpartition("-")[2],
            clock=clock,
        )
        self._vectorizer = Vectorizer(vectors, embedder, settings, self._metrics, others)
        self.purger = Purger(
            log=log,
            manifest=manifest,
            stores=(vectors, texts),
            workspace=workspace,
            settings=settings,
            forget=self._forgotten,
        )
        self._prober = Prober(
            log=log,
            manifest=manifest,
            vectors=vectors,
            texts=texts,
            embedder=embedder,
            consumer=settings.consumer,
            clock=clock,
        )
        self._preparers: list[Preparer] = []
        self._pipelines: list[Pipeline] = []
        self._indexing: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._beside: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to index and to sweep. Raises UnavailableError where the file log or the embedder does not answer."""
        await self._log.subscribe(self._settings.consumer)
        window = (await self._embedder.info()).window
        tokens = self._settings.chunk_tokens
        limits = Limits(target_tokens=tokens, max_tokens=window)
        tokenizer = await self._embedder.tokenizer()
        for live in (True, False):
            self._preparers.append(Preparer(tokenizer, limits))
            self._pipelines.append(self._build(self._preparers[-1], live=live))
        self._indexing = asyncio.create_task(self._index(), name="indexing")
        self._sweeping = asyncio.create_task(self.sweeper.run(), name="sweeping")
        self._beside = [asyncio.create_task(self.reporter.run(), name="reporting")]
        if self._settings.repair:
            self._beside.append(asyncio.create_task(self.repairer.run(), name="repairing"))

    def _build_repairer(self) -> Repairer:
        settings = self._settings
        inspector = Inspector(
            log=self._log,
            manifest=self._manifest,
            vectors=self._vectors,
            texts=self._texts,
            consumer=settings.consumer,
            timeout=settings.store_timeout,
            on_stray=self.sweeper.unlisted,
        )
        mender = Mender(
            log=self._log, manifest=self._manifest, workspace=self._workspace, timeout=settings.sync_timeout
        )
        return Repairer(
            inspector,
            mender,
            (self._vectors, self._texts),
            settings=settings,
            metrics=self._metrics,
            settler=self._settler,
        )

    async def _index(self) -> None:
        async with asyncio.TaskGroup() as pipelines:
            for pipeline in self._pipelines:
                pipelines.create_task(pipeline.run())

    def _build(self, preparer: Preparer, *, live: bool) -> Pipeline:
        vectorizer = self._vectorizer
        composer = Composer(
            fetch=partial(self._log.fetch, self._settings.consumer, live=live),
            manifest=self._manifest,
            stores=(self._vectors, self._texts),
            preparer=preparer,
            vectors=vectorizer,
            settler=self._settler,
            settings=self._settings,
            clock=self._clock,
        )
        write = WriteStage(
            vectors=self._vectors,
            texts=self._texts,
            manifest=self._manifest,
            sweeper=self.sweeper,
            settler=self._settler,
            settings=self._settings,
            metrics=self._metrics,
        )
        embed = EmbedStage(vectorizer, self._settler, self._settings, live=live)
        return Pipeline(
            composer=composer,
            embed=embed,
            write=write,
            settler=self._settler,
            metrics=self._metrics,
            throttle=Throttle() if live else self.throttle,  # edits are few, and must not take the import's rest
            live=live,
        )

    async def stop(self, timeout: float) -> None:
        """Take in no more, finish what is in work within `timeout` seconds, abandon the rest: it is delivered again."""
        if self._indexing is None or self._sweeping is None:
            return
        tasks = {self._indexing, self._sweeping}
        for pipeline in self._pipelines:
            pipeline.stop()
        self._sweeping.cancel()
        for task in self._beside:
            tasks.add(task)
            task.cancel()
        await asyncio.wait({self._indexing}, timeout=timeout)
        if not self._indexing.done():
            _log.warning("indexing stopped in the middle; it goes on after the next start", waited=timeout)
            self._indexing.cancel()
        ended, _ = await asyncio.wait(tasks, timeout=_LAST_WAIT)
        for task in ended:
            if not task.cancelled() and (error := task.exception()):
                _log.error("a part of the indexer had failed", part=task.get_name(), exc_info=error)
        for preparer in self._preparers:
            preparer.close()

    async def closed(self) -> None:
        """Wait until indexing ends; raises what ended it, if that was not `stop`."""
        if self._indexing is not None:
            await asyncio.shield(self._indexing)

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending.

        A file that is set aside does not count as indexed, though chunks of its last good state are still found.
        """
        # Before the view: a state is settled after its commit, so what is not pending is in the view.
        pending = await self._log.pending(self._settings.consumer, scope)
        since = await self._log.pending_since(self._settings.consumer, scope) if pending else 0.0
        view = await self._manifest.view(scope)
        outlines = [outline for outline in view.outlines.values() if not outline.deleted]
        status = IndexStatus(
            scope=scope,
            files=sum(outline.problem is None for outline in outlines),
            chunks=sum(len(outline.chunks) for outline in outlines),
            pending=pending,
            quarantined=tuple(_quarantined(outlines)),
            revision=f"{view.sequence:x}",
            checked=self.repairer.checked.get(scope, 0.0),
            failure=self._settler.last_failure(scope),
            warnings=tuple(FileWarning(outline.key.path, outline.warning) for outline in outlines if outline.warning),
        )
        return self.reporter.told(status, since)

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        return await self._disk_bytes() if self._disk_bytes else 0

    async def probe(self, scope: Scope, timeout: float) -> Sequence[PartProbe]:
        """Ask each part something small, with data of `scope`, at most `timeout` seconds; none that fails is raised."""
        return await self._prober.probe(scope, timeout)

    async def progress(self, scope: Scope, timeout: float = math.inf) -> AsyncIterator[IndexStatus]:
        """Report the status, now and after changes, until nothing is pending or `timeout` seconds are over."""
        deadline = self._clock() + timeout
        while True:
            ended = self._settler.next_end
            status = await self.status(scope)
            yield status
            left = deadline - self._clock()
            if not status.pending or left <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK_AGAIN)):
                    await ended.wait()
                await asyncio.sleep(min(left, _REPORT_EVERY))

    async def wait_idle(self, scope: Scope, timeout: float) -> IndexStatus:
        """Wait until nothing is pending, at most `timeout` seconds; returns the last status."""
        status = await self.status(scope)
        if status.pending:
            async for status in self.progress(scope, timeout):  # noqa: B007  (the last one is returned)
                pass
        return status

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        """Compare a folder with the file log and wait until what differs is searchable.

        Returns how many file states were put, and how many are still pending when the time is over.
        """
        if self._workspace is None:
            raise UnavailableError(f"no folder of {scope} is reached from this indexer: start its workspace service")
        began = self._clock()
        changed = await self._workspace.sync(scope, timeout)
        status = await self.wait_idle(scope, max(timeout - (self._clock() - began), 0.0))
        return changed, status.pending

    async def workspaces(self) -> Sequence[Scope]:
        """List the workspaces that anything is known of, of all tenants."""
        return await self.repairer.scopes()

    async def check(self, scope: Scope, *, mend: bool, timeout: float) -> Checkup:
        """Compare log, outlines and stores of a workspace, and mend what does not fit, within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                return await self.repairer.check(scope, mend=mend)
        except TimeoutError:
            raise DeadlineExceededError(
                f"comparing {scope} took longer than {timeout:g} s: the indexer does it by itself, too; see its log"
            ) from None

    def _forgotten(self, scope: Scope) -> None:
        self._vectorizer.forget()
        if self._forget is not None:
            self._forget(scope)

    async def purge(self, order: PurgeOrder, *, timeout: float) -> PurgeReceipt:
        """Remove for good, as far as that can be done within `timeout` seconds; to be repeated until it is verified."""
        return await self.purger.purge(order, timeout)

    async def unblock(self, key: FileKey, *, timeout: float) -> bool:
        """Take a file off the block list; whether it was on it."""
        unblocked = await self.lift(key, timeout=timeout)
        await self.ask_owner(key.scope, timeout)
        return unblocked

    async def lift(self, key: FileKey, *, timeout: float) -> bool:
        """Take a file off the block list, and wait until this generation shows that; its owner is not told."""
        return await self.purger.unblock(key, timeout)

    async def ask_owner(self, scope: Scope, timeout: float) -> None:
        """Have a folder compared with the file log soon rather than late, if its owner can be asked now."""
        if self._workspace is not None:
            with suppress(MemorydError):
                await self._workspace.sync(scope, timeout)

    async def reindex(self, scope: Scope) -> int:
        """Put every file of a workspace into the queue again, under new revisions; returns how many."""
        count = 0
        async for listed in self._log.scan(scope):
            logged = await self._log.get(listed.state.key)
            if logged is None or logged.state.deleted:
                continue
            try:
                await self._log.put(logged.state, expected=logged.revision, live=False)
            except ConflictError:
                continue  # a newer state has come, and is in the queue
            count += 1
        return count


def _quarantined(outlines: list[Outline]) -> list[QuarantinedFile]:
    return [QuarantinedFile(outline.key.path, outline.problem) for outline in outlines if outline.problem is not None]
