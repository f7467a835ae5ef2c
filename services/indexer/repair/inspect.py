"""Inspecting: one reading of a workspace's log, outlines and stores, and what does not fit together in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memoryd.domain.files import FileKey, FileState, LoggedFile
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.plans import BLOCKED
from memoryd.domain.repairs import Checkup, Defect, Finding
from memoryd.domain.sealing import find
from memoryd.ports import ChunkStore, FileLog, Manifest, TextStore, VectorStore

# Called with a file and chunks of it that its outline does not list and that may be collected.
OnStray = Callable[[FileKey, Iterable[str]], None]


@dataclass(slots=True)
class _Held:
    """What a store holds of a workspace, compared with its outlines: counts by path."""

    lost: Counter[str] = field(default_factory=Counter)
    unowned: Counter[str] = field(default_factory=Counter)
    stray: int = 0


class Inspector:
    """Compares, and changes nothing. What was read at different times is looked at once more before it is reported."""

    def __init__(
        self,
        *,
        log: FileLog,
        manifest: Manifest,
        vectors: VectorStore,
        texts: TextStore,
        consumer: str,
        timeout: float,
        on_stray: OnStray,
    ) -> None:
        """Take the ports. `timeout`: seconds that a store may take for each page."""
        self._log, self._manifest, self._vectors, self._texts = log, manifest, vectors, texts
        self._consumer, self._timeout, self._on_stray = consumer, timeout, on_stray

    async def scopes(self, logged: Iterable[Scope] | None = None) -> Sequence[Scope]:
        """List the workspaces that anything is known of; `logged`: from `logged`, where that was asked before."""
        logged = await self._log.scopes() if logged is None else logged
        return sorted({*logged, *await self._manifest.scopes()})

    async def logged(self) -> Collection[Scope]:
        """List the workspaces that have a file in the log."""
        return set(await self._log.scopes())

    async def is_suspicious(self, scope: Scope, logged: Container[Scope]) -> bool:
        """Look at the beginnings only: whether a whole part of a workspace seems to be gone. Cheap.

        `logged`: from `logged`, which is not asked for each workspace: it reads the keys of all.
        """
        outlines = (await self._manifest.view(scope)).outlines
        present = [outline for outline in outlines.values() if not outline.deleted]
        if not outlines:
            return not await self._log.pending(self._consumer, scope)  # the log has files of it: see `scopes`
        if present and scope not in logged:
            return True
        if any(outline.chunks for outline in present):
            for store in (self._vectors, self._texts):
                if await self._is_empty(store, scope):
                    return True
        return False

    async def inspect(self, scope: Scope) -> Checkup:
        """Compare a workspace."""
        view = await self._manifest.view(scope)
        vectors = await self._held(self._vectors, scope, view.outlines)
        texts = await self._held(self._texts, scope, view.outlines)
        # Before the log: what waits can't be judged, so nothing of a long queue is kept here.
        pending = await self._log.pending(self._consumer, scope)
        unlogged = {*view.outlines, *vectors.unowned, *texts.unowned}
        files, unlike = 0, list[LoggedFile]()
        async for file in self._log.scan(scope):
            files += not file.state.deleted
            unlogged.discard(file.state.key.path)
            if not pending and not _agrees(view.outlines.get(file.state.key.path), file):
                unlike.append(file)
        # And after it: nothing pending means that all that it held then is settled, and so committed.
        pending = pending or await self._log.pending(self._consumer, scope)
        found = [await self._judge(file, view.outlines.get(file.state.key.path), pending) for file in unlike]
        found += [await self._judge_unlogged(FileKey(scope, path), view.outlines.get(path)) for path in unlogged]
        judged = {finding.path: finding for finding in found if finding is not None}
        for path in {*vectors.lost, *texts.lost} - judged.keys():
            finding = await self._lost(FileKey(scope, path), view.outlines.get(path), vectors, texts)
            if finding is not None:
                judged[path] = finding
        return Checkup(
            scope=scope,
            files=files,
            chunks=sum(len(outline.chunks) for outline in view.outlines.values()),
            pending=pending,
            stray=max(vectors.stray, texts.stray),
            findings=tuple(finding for _, finding in sorted(judged.items())),
        )

    async def _judge(self, logged: LoggedFile, outline: Outline | None, pending: int) -> Finding | None:
        """Judge a file by log and outline alone, where these do not agree."""
        key = logged.state.key
        if pending:
            return None
        if _has_lost_block(outline, logged):
            return Finding(key.path, Defect.BLOCK_LOST)
        return None if _shows(await self._manifest.outline(key), logged) else Finding(key.path, Defect.NOT_INDEXED)

    async def _judge_unlogged(self, key: FileKey, outline: Outline | None) -> Finding | None:
        if await self._log.get(key) is not None:
            return None  # it has come meanwhile
        outline = outline or await self._manifest.outline(key)
        if outline is None:
            return Finding(key.path, Defect.ORPHANED)
        if _is_blocked(outline):
            return Finding(key.path, Defect.BLOCK_LOST)
        return None if outline.deleted else Finding(key.path, Defect.NOT_LOGGED)

    async def _lost(self, key: FileKey, outline: Outline | None, vectors: _Held, texts: _Held) -> Finding | None:
        counts = vectors.lost[key.path], texts.lost[key.path]
        if outline is None or not any(counts):
            return None
        fresh = await self._manifest.outline(key)
        if fresh is None or fresh.entry != outline.entry:
            return None  # committed meanwhile: the chunks may have been collected since they were listed
        return Finding(key.path, Defect.CHUNKS_LOST, *counts)

    async def _held(self, store: ChunkStore, scope: Scope, outlines: Mapping[str, Outline]) -> _Held:
        held = _Held()
        missing = {name: path for path, outline in outlines.items() for name in outline.by_id}
        async with asyncio.timeout(self._timeout) as limit:
            # What a commit has written since the outlines were read is not known, and nothing else is read in full.
            async for page in store.scan(scope, known=missing):
                for chunk in page:
                    if missing.pop(chunk.id, None) is not None:
                        continue
                    outline = find(outlines, chunk.path)
                    if outline is None:
                        held.unowned[chunk.path] += 1
                    elif outline.collectable(chunk):
                        held.stray += 1
                        self._on_stray(FileKey(scope, chunk.path), [chunk.id])
                limit.reschedule(asyncio.get_running_loop().time() + self._timeout)
        held.lost.update(missing.values())
        return held

    async def _is_empty(self, store: ChunkStore, scope: Scope) -> bool:
        async with asyncio.timeout(self._timeout):
            async for page in store.scan(scope):
                if page:
                    return False
        return True


def _shows(outline: Outline | None, logged: LoggedFile) -> bool:
    return outline is not None and outline.revision >= logged.revision


def _agrees(outline: Outline | None, logged: LoggedFile) -> bool:
    return _shows(outline, logged) and not _has_lost_block(outline, logged)


def _has_lost_block(outline: Outline | None, logged: LoggedFile) -> bool:
    return _is_blocked(outline) and not logged.state.deleted and not _is_blocked(logged.state)


def _is_blocked(subject: Outline | FileState | None) -> bool:
    return subject is not None and subject.problem is not None and subject.problem.reason == BLOCKED
