"""Inspecting: one reading of a workspace's log, outlines and stores, and what does not fit together in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that anything is known of."""
        return sorted({*await self._log.scopes(), *await self._manifest.scopes()})

    async def is_suspicious(self, scope: Scope) -> bool:
        """Look at the beginnings only: whether a whole part of a workspace seems to be gone. Cheap."""
        outlines = (await self._manifest.view(scope)).outlines
        present = [outline for outline in outlines.values() if not outline.deleted]
        if not outlines:
            return not await self._log.pending(self._consumer, scope)  # the log has files of it: see `scopes`
        if present and scope not in await self._log.scopes():
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
        logged = {file.state.key.path: file async for file in self._log.scan(scope)}
        # After the log: nothing pending means that all that it held then is settled, and so committed.
        pending = await self._log.pending(self._consumer, scope)
        found: list[Finding] = []
        for path in sorted({*logged, *view.outlines, *vectors.unowned, *texts.unowned}):
            finding = await self._judge(FileKey(scope, path), logged.get(path), view.outlines.get(path), pending)
            if finding is None:
                finding = await self._lost(FileKey(scope, path), view.outlines.get(path), vectors, texts)
            if finding is not None:
                found.append(finding)
        return Checkup(
            scope=scope,
            files=sum(not file.state.deleted for file in logged.values()),
            chunks=sum(len(outline.chunks) for outline in view.outlines.values()),
            pending=pending,
            stray=max(vectors.stray, texts.stray),
            findings=tuple(found),
        )

    async def _judge(
        self, key: FileKey, logged: LoggedFile | None, outline: Outline | None, pending: int
    ) -> Finding | None:
        """Judge a file by log and outline alone."""
        if logged is None:
            return await self._judge_unlogged(key, outline)
        if _is_blocked(outline) and not logged.state.deleted and not _is_blocked(logged.state):
            return Finding(key.path, Defect.BLOCK_LOST) if not pending else None
        if pending or _shows(outline, logged) or _shows(await self._manifest.outline(key), logged):
            return None
        return Finding(key.path, Defect.NOT_INDEXED)

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
            async for page in store.scan(scope):
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


def _is_blocked(subject: Outline | FileState | None) -> bool:
    return subject is not None and subject.problem is not None and subject.problem.reason == BLOCKED
