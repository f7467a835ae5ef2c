"""Ports in memory, for tests of use cases: simple, exact, and countable."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.files import FileKey, FileState, LoggedFile, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline, WorkspaceView
from memoryd.domain.queries import ModelInfo
from memoryd.domain.sealing import sealed_key
from memoryd.domain.sketches import QueryTokens, make_sketch
from memoryd.errors import ConflictError, UnimplementedError
from memoryd.ports import EmbeddedChunk, Embedding, Embeddings, Filter, Lane, Nearest, QueryTerm, TextKind

DIMENSIONS = 8


@dataclass
class _Task:
    """A state that a consumer has not settled."""

    revision: Revision
    live: bool
    due: float = 0.0
    attempts: int = 0
    since: float = field(default_factory=time.time)


class MemoryDelivery:
    """A delivery; settling it has no effect once a later state of the file has come."""

    def __init__(self, file: LoggedFile, attempt: int, tasks: dict[FileKey, _Task], log: MemoryFileLog) -> None:
        self.file, self.attempt = file, attempt
        self._tasks, self._log = tasks, log

    def _task(self) -> _Task | None:
        task = self._tasks.get(self.file.state.key)
        return task if task is not None and task.revision == self.file.revision else None

    async def ack(self) -> None:
        if self._task():
            del self._tasks[self.file.state.key]

    async def retry(self, delay: float) -> None:
        task = self._task()
        if task and task.attempts == self.attempt:
            task.due = time.monotonic() + delay
            self._log.notify()

    async def in_progress(self) -> bool:
        task = self._task()
        if task and task.attempts == self.attempt:
            task.due = time.monotonic() + self._log.lease
            return True
        return False


class MemoryFileLog:
    """The last state of every file."""

    def __init__(self, lease: float = 60.0) -> None:
        self.lease = lease
        self._states: dict[FileKey, LoggedFile] = {}
        self._consumers: dict[str, dict[FileKey, _Task]] = {}
        self._sequence = 0
        self._arrived = asyncio.Event()

    async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
        last = self._states.get(state.key) or self._states.get(sealed_key(state.key))
        if (last and last.revision) != expected:
            raise ConflictError("the file changed meanwhile")
        self._states.pop(sealed_key(state.key), None)
        self._sequence += 1
        revision = Revision(1, self._sequence)
        self._states[state.key] = LoggedFile(state, revision)
        for tasks in self._consumers.values():
            tasks[state.key] = _Task(revision, live)
        self.notify()
        return revision

    async def get(self, key: FileKey) -> LoggedFile | None:
        logged = self._states.get(key) or self._states.get(sealed_key(key))
        return logged and replace(logged, state=replace(logged.state, key=key))

    async def seal(self, logged: LoggedFile) -> Revision:
        key = logged.state.key
        if self._states.get(key) != logged:
            raise ConflictError("the file changed meanwhile")
        del self._states[key]
        for tasks in self._consumers.values():
            tasks.pop(key, None)
        return await self.put(FileState.deletion(sealed_key(key), logged.state.modified), expected=None, live=False)

    async def scan(self, scope: Scope) -> AsyncIterator[LoggedFile]:
        for key in sorted(self._states):
            if key.scope == scope:
                logged = self._states[key]
                yield replace(logged, state=replace(logged.state, content=None))

    async def scopes(self) -> Sequence[Scope]:
        return sorted({key.scope for key in self._states})

    async def subscribe(self, consumer: str) -> None:
        states = self._states.items()
        self._consumers.setdefault(consumer, {key: _Task(logged.revision, live=False) for key, logged in states})

    async def unsubscribe(self, consumer: str) -> None:
        self._consumers.pop(consumer, None)

    async def fetch(
        self, consumer: str, *, limit: int, timeout: float, live: bool | None = None
    ) -> Sequence[MemoryDelivery]:
        deadline = time.monotonic() + timeout
        while True:
            arrived, all_tasks, now = self._arrived, self._consumers[consumer], time.monotonic()
            tasks = {key: task for key, task in all_tasks.items() if live is None or task.live is live}
            due = [(not task.live, task.revision, key) for key, task in tasks.items() if task.due <= now]
            taken = []
            for _, _, key in sorted(due)[:limit]:
                task = tasks[key]
                task.attempts, task.due = task.attempts + 1, now + self.lease
                taken.append(MemoryDelivery(self._states[key], task.attempts, all_tasks, self))
            if taken or now >= deadline:
                return taken
            until = min([deadline, *(task.due for task in tasks.values())])
            with suppress(TimeoutError):
                async with asyncio.timeout(max(until - now, 0.0)):
                    await arrived.wait()

    async def pending(self, consumer: str, scope: Scope) -> int:
        return sum(key.scope == scope for key in self._consumers[consumer])

    async def pending_since(self, consumer: str, scope: Scope) -> float:
        tasks = self._consumers[consumer].items()
        return min((task.since for key, task in tasks if key.scope == scope), default=0.0)

    def age(self, seconds: float) -> None:
        """Let what is pending have waited longer."""
        for tasks in self._consumers.values():
            for task in tasks.values():
                task.since -= seconds

    def notify(self) -> None:
        """Wake those that wait in `fetch`."""
        self._arrived.set()
        self._arrived = asyncio.Event()


class MemoryManifest:
    """Outlines with compare-and-set."""

    def __init__(self) -> None:
        self.outlines: dict[FileKey, Outline] = {}
        self.commits: list[Outline] = []
        self._entry = 0
        self._sequences: Counter[Scope] = Counter()
        self._views: dict[Scope, WorkspaceView] = {}
        self._committed = asyncio.Condition()

    async def outline(self, key: FileKey) -> Outline | None:
        outline = self.outlines.get(key) or self.outlines.get(sealed_key(key))
        return outline and replace(outline, key=key)

    async def seal(self, outline: Outline) -> None:
        sealed = sealed_key(outline.key)
        await self.commit(replace(outline, key=sealed), was=outline.key)

    async def commit(self, outline: Outline, was: FileKey | None = None) -> Outline:
        names = (was or outline.key, sealed_key(outline.key))
        current = next((self.outlines[name] for name in names if name in self.outlines), None)
        if (current.entry if current else 0) != outline.entry:
            raise ConflictError("another commit came first")
        self._entry += 1
        for name in names:
            self.outlines.pop(name, None)
        committed = replace(outline, entry=self._entry)
        self.outlines[outline.key] = committed
        self.commits.append(committed)
        self._sequences[outline.key.scope] += 1
        async with self._committed:
            self._committed.notify_all()
        return committed

    async def view(self, scope: Scope) -> WorkspaceView:
        sequence, last = self._sequences[scope], self._views.get(scope)
        if last is None or last.sequence != sequence:
            outlines = {key.path: outline for key, outline in self.outlines.items() if key.scope == scope}
            last = self._views[scope] = WorkspaceView(sequence, outlines)
        return last

    async def scopes(self) -> Sequence[Scope]:
        return sorted({key.scope for key in self.outlines})

    async def wait(self, scope: Scope, after: int, timeout: float) -> int:
        async with self._committed:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._committed.wait_for(lambda: self._sequences[scope] > after)
        return self._sequences[scope]


class _MemoryStore:
    """What both stores share."""

    def __init__(self) -> None:
        self.held: dict[str, Chunk] = {}
        self.writes = 0

    async def ensure(self) -> None:
        return

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        for name in ids:
            if name in self.held and self.held[name].key.scope == scope:
                self.remove(name)

    def remove(self, name: str) -> None:
        del self.held[name]

    async def scan(
        self, scope: Scope, path: str | None = None, *, known: Container[str] | None = None
    ) -> AsyncIterator[Sequence[ChunkRef]]:
        for chunk in list(self.held.values()):
            if chunk.key.scope == scope and path in {None, chunk.key.path}:
                unread = known is not None and chunk.id in known
                yield [ChunkRef(chunk.id, *(("", Revision(0, 0)) if unread else (chunk.key.path, chunk.birth)))]

    async def close(self) -> None:
        return

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        held = {name: self.held[name] for name in ids if name in self.held}
        return {name: chunk for name, chunk in held.items() if chunk.key.scope == scope}

    def matching(self, where: Filter) -> list[Chunk]:
        """List what a filter lets pass."""
        return [
            chunk
            for chunk in self.held.values()
            if chunk.key.scope == where.scope
            and chunk.source in where.sources
            and chunk.key.path.startswith(where.path_prefix)
            and (not chunk.date or where.since <= chunk.date <= (where.until or chunk.date))
            and (where.include_private or not chunk.private)
            and (where.ids is None or chunk.id in where.ids)
            and where.tags <= set(chunk.tags)
            and (where.paths is None or chunk.key.path in where.paths)
        ]


class MemoryVectorStore(_MemoryStore):
    """Chunks with vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, NDArray[np.float32]] = {}
        self.sketched: dict[str, bytes] = {}

    async def upsert(self, chunks: Sequence[EmbeddedChunk]) -> None:
        self.writes += len(chunks)
        for each in chunks:
            self.held[each.chunk.id] = each.chunk
            self.stored[each.chunk.id] = each.vector
            self.sketched[each.chunk.id] = each.sketch

    def remove(self, name: str) -> None:
        super().remove(name)
        del self.stored[name], self.sketched[name]

    async def nearest(self, vector: NDArray[np.float32], where: Filter, limit: int, ids: Sequence[str]) -> Nearest:
        hits = [(chunk.id, float(self.stored[chunk.id] @ vector)) for chunk in self.matching(where)]
        cosines = dict.fromkeys(ids) | dict(await MemoryVectorStore.cosines(self, vector, where.scope, ids))
        return Nearest(sorted(hits, key=lambda hit: -hit[1])[:limit], cosines)

    async def cosines(self, vector: NDArray[np.float32], scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        held = {name: self.held[name] for name in ids if name in self.held}
        return {name: float(self.stored[name] @ vector) for name, chunk in held.items() if chunk.key.scope == scope}

    async def sketches(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, bytes]:
        held = {name: self.held[name] for name in ids if name in self.held and self.sketched[name]}
        return {name: self.sketched[name] for name, chunk in held.items() if chunk.key.scope == scope}

    async def embeddings(self, tenant: str, text_hashes: Sequence[str]) -> Mapping[str, Embedding]:
        wanted = set(text_hashes)
        return {
            chunk.text_hash: Embedding(self.stored[chunk.id], self.sketched[chunk.id])
            for chunk in self.held.values()
            if chunk.key.scope.tenant == tenant and chunk.text_hash in wanted
        }

    async def count(self) -> int:
        return len(self.held)


class MemoryTextStore(_MemoryStore):
    """Chunks with terms."""

    async def upsert(self, chunks: Sequence[Chunk]) -> None:
        self.writes += len(chunks)
        self.held.update({chunk.id: chunk for chunk in chunks})

    async def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[tuple[str, float]]:
        hits = []
        for chunk in self.matching(where):
            held = Counter(chunk.terms.split())
            if score := sum(term.weight * held[term.term] for term in terms):
                hits.append((chunk.id, score))
        return sorted(hits, key=lambda hit: -hit[1])[:limit]


class FakeTokenizer:
    """A token is four characters; prompt and special tokens are four tokens."""

    def count(self, texts: Sequence[str], kind: TextKind = TextKind.PASSAGE) -> list[int]:
        return [len(text) // 4 + 4 for text in texts]

    def weights(self, words: Sequence[str]) -> list[float]:
        return [float(len(word)) for word in words]


class FakeEmbedder:
    """Vectors made from hashes; counts what it embeds; fails on demand.

    `fault` looks at the texts of a call and gives the error to raise, or None. Where it gives sketches, each word is a
    token, and all are equally rare.
    """

    def __init__(self, window: int = 512, *, sketches: bool = False) -> None:
        self.window, self.sketches = window, sketches
        self.embedded: Counter[str] = Counter()
        self.calls = 0
        self.fault: Callable[[Sequence[str]], Exception | None] = lambda texts: None

    async def info(self) -> ModelInfo:
        return ModelInfo("fake", "fake-1", DIMENSIONS, self.window, 0.0, 1.0, "fake", sketches=self.sketches)

    async def tokenizer(self) -> FakeTokenizer:
        return FakeTokenizer()

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        self.calls += 1
        if error := self.fault(texts):
            raise error
        self.embedded.update(texts)
        vectors, tokens = np.stack([vector_of(text) for text in texts]), sum(FakeTokenizer().count(texts))
        if not sketches:
            return Embeddings(vectors, tokens)
        assert self.sketches
        if kind is TextKind.PASSAGE:
            return Embeddings(vectors, tokens, sketches=tuple(sketch_of(text) for text in texts))
        return Embeddings(vectors, tokens, query_tokens=tuple(query_tokens_of(text) for text in texts))

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        raise UnimplementedError("no cross-encoder is configured")


def vector_of(text: str) -> NDArray[np.float32]:
    """Make the vector of a text: a function of it alone, of length 1."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def sketch_of(text: str) -> bytes:
    """Make the sketch of a text: a token a word."""
    return make_sketch(_word_vectors(text), np.zeros(DIMENSIONS, np.float32))


def query_tokens_of(text: str) -> QueryTokens:
    """Make the tokens of a query: one a word."""
    return QueryTokens(_word_vectors(text), np.ones(len(text.split())))


def _word_vectors(text: str) -> NDArray[np.float32]:
    words = text.split()
    return np.stack([vector_of(word) for word in words]) if words else np.empty((0, DIMENSIONS), np.float32)
