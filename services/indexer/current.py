"""The indexer's use cases over all generations: it tells of the one that answers, and acts on all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Generic, TypeVar

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgedFile, PurgeOrder, PurgeReceipt
from memoryd.domain.repairs import Checkup
from memoryd.errors import NotFoundError
from memoryd.generations.live import Live
from memoryd.ports import IndexStatus, KeyStore, Maintenance, PartProbe
from services.indexer.generation import Failure, IndexedGeneration

P = TypeVar("P")

# Seconds after which a wait looks whether another generation answers now.
_LOOK_AGAIN = 1.0


class CurrentIndexing(Maintenance, Generic[P]):
    """What `Indexer` offers, over the open generations.

    Args:
        live: the open generations.
        indexed_of: what indexes one of them.
        failure: what has ended one.
        keys: the API keys, which end with their tenant.
        disk_bytes: measures the indexes of all; None where they are elsewhere.
    """

    def __init__(
        self,
        live: Live[P],
        indexed_of: Callable[[P], IndexedGeneration],
        failure: Failure,
        keys: KeyStore,
        disk_bytes: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._live, self._of, self._failure, self._disk_bytes = live, indexed_of, failure, disk_bytes
        self._keys = keys

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending."""
        async with self._live.using() as (name, bundle):
            return _named(name, await self._of(bundle).indexer.status(scope))

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        return await self._disk_bytes() if self._disk_bytes else 0

    async def probe(self, scope: Scope, timeout: float) -> Sequence[PartProbe]:
        """Ask each part of the generation that answers something small, at most `timeout` seconds."""
        async with self._live.using() as (_, bundle):
            return await self._of(bundle).indexer.probe(scope, timeout)

    async def progress(self, scope: Scope, timeout: float = math.inf) -> AsyncIterator[IndexStatus]:
        """Report the status, now and after changes, until nothing is pending or `timeout` seconds are over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            async with self._live.using() as (name, bundle):
                left = min(_LOOK_AGAIN, deadline - loop.time())
                async for status in self._of(bundle).indexer.progress(scope, left):
                    yield _named(name, status)
            if not status.pending or loop.time() >= deadline:
                return

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        """Compare a folder with the file log and wait until what differs is searchable.

        Returns how many file states were put, and how many are still pending when the time is over.
        """
        async with self._live.using() as (_, bundle):
            return await self._of(bundle).indexer.sync(scope, timeout)

    async def reindex(self, scope: Scope) -> int:
        """Put every file of a workspace into the queue of every generation again; returns how many."""
        async with self._live.using() as (_, bundle):
            return await self._of(bundle).indexer.reindex(scope)

    async def workspaces(self) -> Sequence[Scope]:
        """List the workspaces that anything is known of, of all tenants."""
        found: set[Scope] = set()
        for generation in self._open():
            found.update(await generation.indexer.workspaces())
        return sorted(found)

    async def check(self, scope: Scope, *, mend: bool, timeout: float) -> Checkup:
        """Compare log, outlines and stores of a workspace, and mend what does not fit, within `timeout` seconds.

        A generation beside the one that answers is judged where nothing of it is pending.
        """
        end = asyncio.get_running_loop().time() + timeout
        first, *others = self._open()
        checkup = await first.indexer.check(scope, mend=mend, timeout=timeout)
        for generation in others:
            if generation.started:
                left = end - asyncio.get_running_loop().time()
                other = await generation.indexer.check(scope, mend=mend, timeout=left)
                if other.judged:
                    findings = (*checkup.findings, *other.findings)
                    checkup = replace(checkup, stray=checkup.stray + other.stray, findings=findings)
        return checkup

    async def purge(self, order: PurgeOrder, *, timeout: float) -> PurgeReceipt:
        """Remove for good, as far as that can be done within `timeout` seconds; to be repeated until it is verified."""
        end = asyncio.get_running_loop().time() + timeout
        receipts: list[PurgeReceipt] = []
        unknown: NotFoundError | None = None
        for generation in self._open():
            if not generation.started:
                name = generation.parts.generation.id
                waits_for = f"generation {name}, whose model is away: bring it back, or drop the generation"
                receipts.append(PurgeReceipt((), verified=False, again_in=_LOOK_AGAIN, waits_for=waits_for))
                continue
            try:
                left = end - asyncio.get_running_loop().time()
                receipts.append(await generation.indexer.purge(order, timeout=left))
            except NotFoundError as error:
                unknown = error
        # Not before: what may not be purged keeps its keys.
        revoked = 0 if order.workspace else await self._keys.revoke_all(order.tenant)
        if unknown is not None and not revoked and not any(receipt.files for receipt in receipts):
            raise unknown
        receipt = replace(joined(receipts), keys=revoked)
        if not receipt.verified:
            return receipt
        return await self._seal(receipt, end - asyncio.get_running_loop().time())

    async def _seal(self, receipt: PurgeReceipt, timeout: float) -> PurgeReceipt:
        """Take the paths out of log and outlines, now that nothing else is left in any generation."""
        keys = [FileKey(file.scope, file.path) for file in receipt.files]
        generations = self._open()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                outlines = [await generation.indexer.purger.seal_outlines(keys) for generation in generations]
                if all(outlines) and await generations[0].indexer.purger.seal_log(keys):
                    return receipt
        return replace(receipt, verified=False, again_in=_LOOK_AGAIN, waits_for="the paths, which are taken out")

    async def unblock(self, key: FileKey, *, timeout: float) -> bool:
        """Take a file off the block list; whether it was on it.

        Its owner is told when every generation shows that: a text that came earlier would be blocked again.
        """
        end = asyncio.get_running_loop().time() + timeout
        at_work = [generation.indexer for generation in self._open() if generation.started]
        unblocked = [await each.lift(key, timeout=end - asyncio.get_running_loop().time()) for each in at_work]
        for each in at_work[:1]:
            await each.ask_owner(key.scope, end - asyncio.get_running_loop().time())
        return any(unblocked)

    async def closed(self) -> None:
        """Wait until the indexing of a generation fails; raises what ended it."""
        await self._failure.wait()

    def _open(self) -> list[IndexedGeneration]:
        """List what is open, the generation that answers first."""
        current = self._live.current
        return [self._of(current), *(self._of(each) for each in self._live.bundles.values() if each is not current)]


def joined(receipts: Sequence[PurgeReceipt]) -> PurgeReceipt:
    """Make one receipt of those of several generations."""
    files: dict[tuple[Scope, str], PurgedFile] = {}
    for file in (file for receipt in receipts for file in receipt.files):
        last = files.get((file.scope, file.path), PurgedFile(file.scope, file.path))
        added = replace(last, vectors=last.vectors + file.vectors, texts=last.texts + file.texts)
        files[file.scope, file.path] = added
    return PurgeReceipt(
        files=tuple(files.values()),
        verified=all(receipt.verified for receipt in receipts),
        again_in=max((receipt.again_in for receipt in receipts), default=0.0),
        waits_for=next((receipt.waits_for for receipt in receipts if receipt.waits_for), ""),
    )


def _named(name: str, status: IndexStatus) -> IndexStatus:
    """Two generations count their commits alike: the revision names the one that it belongs to."""
    return replace(status, revision=f"{name}.{status.revision}")
