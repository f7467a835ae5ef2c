"""What was read of chunks, kept: a chunk's id stands for all that it stores, so that nothing need be read again."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from cachetools import LRUCache

from memoryd.domain.chunks import Chunk
from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from services.search.metrics import CACHE_BYTES, Outcome, count

V = TypeVar("V")

_SCOPES = 256
_CHUNK_BYTES = 500  # of a chunk, beside its texts
_ENTRY_BYTES = 500  # of an entry, beside its value
_PRUNED_EVERY = 1.0  # seconds, at least, between two looks through what is kept of a workspace


class Entry(NamedTuple, Generic[V]):
    """What is kept of a chunk of a file, and when its time is over, on `time.monotonic`'s clock."""

    value: V
    path: str
    end: float


class Kept(Generic[V]):
    """Values by scope and chunk.

    Those of chunks that the outlines don't list any more are dropped with the next search of their workspace, or a
    second later, so what was purged does not stay. None is given after `seconds`. (cachetools' TTLCache would see to
    that, but takes three times as long for a look-up, and a search has two hundred.)
    """

    def __init__(self, name: str, most_bytes: int, seconds: float, size: Callable[[V], int]) -> None:
        """Keep at most so many bytes, about; 0: nothing. `name` is for the metrics; `size` is a value's."""
        self._name, self._seconds, self._size = name, seconds, size
        self._kept: LRUCache[tuple[Scope, str], Entry[V]] = LRUCache(most_bytes, self._entry_size)
        self._seen: dict[Scope, tuple[WorkspaceView, float]] = {}

    async def of(
        self,
        scope: Scope,
        ids: Sequence[str],
        read: Callable[[Sequence[str]], Awaitable[Mapping[str, V]]],
        path_of: Callable[[str, V], str],
    ) -> Mapping[str, V]:
        """Give values by id; those that are not kept are `read`, and those that are nowhere are left out."""
        now, get = time.monotonic(), self._kept.get
        found = {name: entry.value for name in ids if (entry := get((scope, name))) is not None and entry.end > now}
        missing = [name for name in ids if name not in found]
        count(self._name, Outcome.MISS if missing else Outcome.HIT)
        if missing:
            new = await read(missing)
            self.keep(scope, ((name, path_of(name, value), value) for name, value in new.items()))
            found.update(new)
        return found

    def keep(self, scope: Scope, read: Iterable[tuple[str, str, V]]) -> None:
        """Keep what was read: ids, paths and values."""
        end = time.monotonic() + self._seconds
        for name, path, value in read:
            new = Entry(value, path, end)
            if self._entry_size(new) <= self._kept.maxsize:
                self._kept[scope, name] = new
        CACHE_BYTES.labels(self._name).set(self._kept.currsize)

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
            for key, entry in self._kept.items()
            if entry.end < now or (key[0] == scope and not _lists(view, entry.path, key[1]))
        )

    def forget(self, scope: Scope) -> None:
        """Drop all of a workspace at once."""
        self._seen.pop(scope, None)
        self._drop(key for key in self._kept if key[0] == scope)

    def _drop(self, keys: Iterable[tuple[Scope, str]]) -> None:
        for key in list(keys):
            self._kept.pop(key, None)
        CACHE_BYTES.labels(self._name).set(self._kept.currsize)

    def _entry_size(self, entry: Entry[V]) -> int:
        return _ENTRY_BYTES + self._size(entry.value)


def kept_chunks(most_bytes: int, seconds: float) -> Kept[Chunk]:
    """Keep chunks, without their sketches."""
    return Kept("chunks", most_bytes, seconds, _chunk_size)


def kept_sketches(most_bytes: int, seconds: float) -> Kept[bytes]:
    """Keep token sketches."""
    return Kept("sketches", most_bytes, seconds, len)


def path_of_chunk(_: str, chunk: Chunk) -> str:
    """Tell whose chunk it is."""
    return chunk.key.path


def _lists(view: WorkspaceView, path: str, name: str) -> bool:
    outline = view.outlines.get(path)
    return outline is not None and name in outline.by_id


def _chunk_size(chunk: Chunk) -> int:
    return _CHUNK_BYTES + sum(map(sys.getsizeof, (chunk.text, chunk.terms, chunk.breadcrumb, chunk.heading_terms)))
