"""Chunks, kept: a chunk's id stands for all that it stores, so what was read once need not be read again."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from cachetools import LRUCache

from memoryd.domain.chunks import Chunk
from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from services.search.metrics import CACHE_BYTES, Outcome, count

_Kept: TypeAlias = tuple[Chunk, float]  # and when it ends, on the clock of time.monotonic

_NAME = "chunks"
_SCOPES = 256
_ENTRY_BYTES = 1_000  # of a chunk, beside its texts
_PRUNED_EVERY = 1.0  # seconds, at least, between two looks through what is kept of a workspace


class Chunks:
    """Chunks by scope and id.

    Those that the outlines don't list any more are dropped with the next search of their workspace, or a second later,
    so what was purged does not stay. All of them end after `seconds`.
    """

    def __init__(self, most_bytes: int, seconds: float) -> None:
        """Keep at most so many bytes, about; 0: nothing."""
        self._kept: LRUCache[tuple[Scope, str], _Kept] = LRUCache(most_bytes, lambda kept: _size(kept[0]))
        self._seconds = seconds
        self._seen: dict[Scope, tuple[WorkspaceView, float]] = {}

    async def of(
        self, scope: Scope, ids: Sequence[str], read: Callable[[Sequence[str]], Awaitable[Mapping[str, Chunk]]]
    ) -> Mapping[str, Chunk]:
        """Give chunks by id; those that are not kept are `read`, and those that are nowhere are left out."""
        # Hundreds a search: cachetools' TTLCache looks through its oldest entries at each.
        now = time.monotonic()
        found: dict[str, Chunk] = {}
        for name in ids:
            with suppress(KeyError):
                chunk, ends = self._kept[scope, name]
                if now < ends:
                    found[name] = chunk
        missing = [name for name in ids if name not in found]
        count(_NAME, Outcome.MISS if missing else Outcome.HIT)
        if missing:
            new = await read(missing)
            self.keep(new.values())
            found.update(new)
        return found

    def keep(self, chunks: Iterable[Chunk]) -> None:
        """Keep chunks that were read."""
        end = time.monotonic() + self._seconds
        for chunk in chunks:
            key = chunk.key.scope, chunk.id
            if _size(chunk) <= self._kept.maxsize:
                self._kept[key] = chunk, end
        CACHE_BYTES.labels(_NAME).set(self._kept.currsize)

    def prune(self, scope: Scope, view: WorkspaceView) -> None:
        """Drop what a view of the outlines does not list; see the class for how soon."""
        last, when = self._seen.get(scope, (None, 0.0))
        now = time.monotonic()
        if last is view or now < when + _PRUNED_EVERY:
            return
        self._seen.pop(scope, None)
        self._seen[scope] = view, now
        if len(self._seen) > _SCOPES:
            self.forget(next(iter(self._seen)))
        self._drop(
            key
            for key, (chunk, end) in self._kept.items()
            if end < now or (key[0] == scope and not _lists(view, chunk))
        )

    def forget(self, scope: Scope) -> None:
        """Drop all chunks of a workspace at once."""
        self._seen.pop(scope, None)
        self._drop(key for key in self._kept if key[0] == scope)

    def _drop(self, keys: Iterable[tuple[Scope, str]]) -> None:
        for key in list(keys):
            self._kept.pop(key, None)
        CACHE_BYTES.labels(_NAME).set(self._kept.currsize)


def _lists(view: WorkspaceView, chunk: Chunk) -> bool:
    outline = view.outlines.get(chunk.key.path)
    return outline is not None and chunk.id in outline.by_id


def _size(chunk: Chunk) -> int:
    return _ENTRY_BYTES + sum(map(sys.getsizeof, (chunk.text, chunk.terms, chunk.breadcrumb, chunk.heading_terms)))
