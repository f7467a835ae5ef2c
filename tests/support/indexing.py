"""Indexers at work on any engines: writes files, lets replicas index, and compares the indexes with the files."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from memoryd.domain.chunking import Limits, chunk_markdown
from memoryd.domain.chunks import Chunk
from memoryd.domain.files import FileKey, FileState, Problem, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.queries import Chat
from memoryd.ports import ChunkStore, FileLog, Filter, IndexStatus, Manifest, QueryTerm, TextStore, VectorStore
from services.indexer.metrics import IndexerMetrics
from services.indexer.service import Indexer
from services.indexer.settings import IndexerSettings
from tests.support.asking import COMMON, Asker
from tests.support.fakes import (
    FakeEmbedder,
    FakeTokenizer,
    MemoryFileLog,
    MemoryManifest,
    MemoryTextStore,
    MemoryVectorStore,
    vector_of,
)
from tests.support.gate import Gate, Gated
from tests.support.hits import text_hits, vector_hits

SCOPE = Scope("acme", "garden")
CHUNK_TOKENS = 16
ALL = 10_000  # as far as OpenSearch goes


@dataclass
class Engines:
    """What holds the data of one deployment."""

    log: FileLog
    manifest: Manifest
    vectors: VectorStore
    texts: TextStore

    @classmethod
    def in_memory(cls) -> Engines:
        """Make empty fakes."""
        return cls(MemoryFileLog(), MemoryManifest(), MemoryVectorStore(), MemoryTextStore())


@dataclass(frozen=True)
class Found:
    """A search result: the revision that the outline shows, and the chunk's lines in it."""

    path: str
    revision: Revision
    start_line: int
    end_line: int
    chunk: Chunk
    private: bool


class World:
    """Engines, replicas, the history of the files, and what must hold."""

    def __init__(
        self,
        engines: Engines,
        scope: Scope = SCOPE,
        **settings: Any,  # noqa: ANN401  (fields of the settings)
    ) -> None:
        self.engines = engines
        self.scope = scope
        self.gate = Gate(scope)
        self.embedder = FakeEmbedder()
        quick = {"retry_base": 1e-6, "retry_cap": 1e-6, "grace": 0.0, "fetch_timeout": 0.5}
        patient = {"lease": 3600.0, "max_hold": 7200.0}  # a test says itself when time passes
        self.settings = IndexerSettings(**{"chunk_tokens": CHUNK_TOKENS, **quick, **patient, **settings})
        self.replicas: dict[str, Indexer] = {}
        self.metrics: dict[str, CollectorRegistry] = {}
        self.history: dict[tuple[str, Revision], FileState] = {}
        self.last: dict[str, Revision] = {}
        self.clock_offset = 0.0
        self._highest: dict[str, Revision] = {}
        self.owner: Any = None  # a `Workspace`, where the test needs one

    async def write(self, path: str, text: str, *, private: bool = False, live: bool = True) -> Revision:
        """Save a file."""
        content = text.encode()
        digest = hashlib.sha256(content).hexdigest()
        return await self.put(FileState(FileKey(self.scope, path), digest, content, 1.7e9, private=private), live=live)

    async def delete(self, path: str) -> Revision:
        """Delete a file."""
        return await self.put(FileState.deletion(FileKey(self.scope, path), 1.7e9))

    async def put(self, state: FileState, *, live: bool = True) -> Revision:
        """Put any state."""
        path = state.key.path
        revision = await self.engines.log.put(state, expected=self.last.get(path), live=live)
        self.last[path] = revision
        self.history[path, revision] = state
        return revision

    async def set_aside(self, path: str, reason: str) -> Revision:
        """Put the state of a file that can't be read."""
        return await self.put(
            FileState(FileKey(self.scope, path), "", None, 1.7e9, problem=Problem(reason, "for a test"))
        )

    async def deliver_again(self) -> None:
        """Deliver again what was delivered and is not settled, as after a lease."""
        for delivery in self.gate.deliveries:
            await delivery.retry(0.0)
        self.gate.deliveries.clear()

    def clock(self) -> float:
        """Monotonic seconds that a test can move."""
        return time.monotonic() + self.clock_offset

    def ports(self, actor: str) -> dict[str, Any]:
        """Give the engines as one actor sees them: behind the gate."""
        ports = {**vars(self.engines), "embedder": self.embedder}
        return {name: Gated(port, name, actor, self.gate) for name, port in ports.items()}

    async def start(self, actor: str = "one") -> Indexer:
        """Start a replica."""
        self.metrics[actor] = CollectorRegistry()
        replica = Indexer(
            **self.ports(actor),
            settings=self.settings,
            workspace=self.owner,
            metrics=IndexerMetrics(self.metrics[actor]),
            clock=self.clock,
        )
        stepping, self.gate.stepping = self.gate.stepping, False
        await replica.start()
        self.gate.stepping = stepping
        self.replicas[actor] = replica
        if stepping:
            await self.gate.quiet()
        return replica

    async def crash(self, actor: str = "one") -> None:
        """End a replica where it is; its leases stay."""
        await self.replicas.pop(actor).stop(0.0)

    async def stop(self) -> None:
        """Stop all replicas in good order."""
        self.gate.open()
        for replica in self.replicas.values():
            await replica.stop(10.0)
        self.replicas.clear()

    async def idle(self) -> IndexStatus:
        """Wait until nothing is pending."""
        if not self.replicas:
            await self.start("last")
        replica = next(iter(self.replicas.values()))

        async def settled() -> bool:
            return not await self.engines.log.pending(self.settings.consumer, self.scope)

        await until(settled)
        return await replica.status(self.scope)

    async def sweep(self) -> None:
        """Sweep over everything, once."""
        sweeper = Indexer(
            **vars(self.engines),
            embedder=self.embedder,
            settings=self.settings,
            metrics=IndexerMetrics(CollectorRegistry()),
            clock=self.clock,
        ).sweeper
        await sweeper.look_over()
        self.clock_offset += self.settings.grace
        await sweeper.sweep()

    def let_pass(self, seconds: float) -> None:
        """Let time pass for the replicas, and have their sweepers see it."""
        self.clock_offset += seconds
        for replica in self.replicas.values():
            replica.sweeper.wake()

    # --- What must hold -----------------------------------------------------------------------------------------------

    async def search(self, actor: str = "search") -> list[Found]:
        """Fix the outlines, run both legs, filter by the outlines: the rule of every search."""
        ports = self.ports(actor)
        view = await ports["manifest"].view(self.scope)
        hits = [
            *await vector_hits(ports["vectors"], vector_of("query"), Filter(self.scope), ALL),
            *await text_hits(ports["texts"], [QueryTerm(COMMON)], Filter(self.scope), ALL),
        ]
        found = []
        for chunk in {hit.chunk.id: hit.chunk for hit in hits}.values():
            outline = view.outlines.get(chunk.key.path)
            if outline is not None and (listed := outline.by_id.get(chunk.id)) is not None:
                lines = listed.start_line, listed.end_line
                found.append(Found(chunk.key.path, self._shown(outline.key, outline), *lines, chunk, outline.private))
        return found

    def _shown(self, key: FileKey, outline: Outline) -> Revision:
        """Tell which revision's text an outline shows: where the newest was set aside, the last one indexed before."""
        if outline.problem is None:
            return outline.revision
        same = [
            (state.private == outline.private, revision)  # a state with the other flag may never have been indexed
            for (path, revision), state in self.history.items()
            if path == key.path and state.hash == outline.file_hash and revision <= outline.revision
        ]
        return max(same)[1]

    def check_s1(self, found: Sequence[Found]) -> None:
        """S1: a search returns chunks of one outline a file, with the file's flags, and right lines."""
        by_path: dict[str, set[Revision]] = {}
        for result in found:
            by_path.setdefault(result.path, set()).add(result.revision)
            state = self.history[result.path, result.revision]
            lines = (state.content or b"").decode().split("\n")
            assert "\n".join(lines[result.start_line - 1 : result.end_line]) == result.chunk.text
            assert result.chunk.private == result.private
        assert all(len(revisions) == 1 for revisions in by_path.values())

    async def check_s2_s3(self) -> None:
        """S2: both stores hold every listed chunk. S3: an outline's revision never goes down."""
        held = [await ids(store, self.scope) for store in (self.engines.vectors, self.engines.texts)]
        for path, outline in (await self.engines.manifest.view(self.scope)).outlines.items():
            for of_store in held:
                assert set(outline.by_id) <= of_store, "S2: a store lacks a chunk that an outline lists"
            assert outline.revision >= self._highest.get(path, outline.revision), "S3: an outline went back"
            self._highest[path] = outline.revision

    async def check_l1(self) -> None:
        """L1: at rest the outlines show the last states, and both stores hold exactly their chunks, once each."""
        outlines = (await self.engines.manifest.view(self.scope)).outlines
        expected: Counter[tuple[str, str, bool]] = Counter()
        for path, revision in self.last.items():
            state, outline = self.history[path, revision], outlines.get(path)
            assert outline is not None, "L1: no outline"
            assert outline.revision == revision, "L1: not the last state"
            assert (outline.deleted, outline.problem) == (state.deleted, state.problem), "L1: not as the file is"
            shown = self.history[path, self._shown(outline.key, outline)] if outline.chunks else state
            if shown.content is not None:
                expected.update((path, piece, shown.private) for piece in pieces(shown.content.decode()))
        for store in (self.engines.vectors, self.engines.texts):
            listed = {name for outline in outlines.values() for name in outline.by_id}
            assert await ids(store, self.scope) == listed, "L1: a store does not hold exactly what is listed"
        hits = await text_hits(self.engines.texts, [QueryTerm(COMMON)], Filter(self.scope), ALL)
        assert Counter((h.chunk.key.path, h.chunk.text, h.chunk.private) for h in hits) == expected, "L1: texts"
        hits = await vector_hits(self.engines.vectors, vector_of("query"), Filter(self.scope), ALL)
        assert Counter((h.chunk.key.path, h.chunk.text, h.chunk.private) for h in hits) == expected, "L1: vectors"

    async def check_rest(self) -> None:
        """Index what is pending, sweep once more, and check everything."""
        self.gate.open()
        await self.idle()
        await self.stop()
        await self.sweep()
        await self.check_s2_s3()
        await self.check_l1()
        self.check_s1(await self.search())
        asker = Asker(self)
        for chat in Chat.DIRECT, Chat.GROUP:
            asker.check(await asker.ask(chat))

    def written(self) -> int:
        """Count the chunks that were written to the stores, both taken together."""
        names = {"vectors.upsert", "texts.upsert"}
        return sum(len(call.arguments[0]) for call in self.gate.calls if call.name in names)

    def embedded(self) -> int:
        """Count the texts that were embedded."""
        return self.embedder.embedded.total()


async def ids(store: ChunkStore, scope: Scope = SCOPE) -> set[str]:
    """List the chunks that a store holds; none twice."""
    found = [chunk.id async for page in store.scan(scope) for chunk in page]
    assert len(found) == len(set(found))
    return set(found)


def pieces(text: str) -> list[str]:
    """Cut a file as the world's indexers do."""
    limits = Limits(target_tokens=CHUNK_TOKENS)
    return [piece.text for piece in chunk_markdown(text, count=FakeTokenizer().count, limits=limits).pieces]


def section(word: str) -> str:
    """Make a section that becomes one chunk of its own."""
    return f"# About {word}\n\n{COMMON} {word} with some more words to fill it\n"


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.001)


async def until_waiting(gate: Gate, name: str, actor: str | None = None) -> Any:  # noqa: ANN401  (a `Waiting`)
    """Let calls go on until one of this name waits at the gate; returns it."""
    async with asyncio.timeout(30):
        while True:
            for waiting in gate.waiting:
                if waiting.name == name and actor in {None, waiting.actor}:
                    return waiting
            mine = [waiting for waiting in gate.waiting if actor in {None, waiting.actor}]
            if mine:
                await gate.step(mine[0])
            else:  # it is at work in a thread
                await asyncio.sleep(0.001)
