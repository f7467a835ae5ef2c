"""A search service on fakes, some of which fail, are late, or give what a test makes."""
# ruff: noqa: ANN401  (a stand-in passes on whatever its store takes)

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memoryd.domain.chunks import Chunk, chunk_id, text_hash
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline, WorkspaceView
from memoryd.domain.queries import SearchAnswer, SearchQuery
from memoryd.domain.text import analyze
from memoryd.ports import EmbeddedChunk, Filter, Nearest
from services.search.service import SearchService
from services.search.settings import SearchSettings
from tests.support.fakes import (
    FakeEmbedder,
    MemoryFileLog,
    MemoryManifest,
    MemoryTextStore,
    MemoryVectorStore,
    vector_of,
)

SCOPE = Scope("acme", "rod")


@dataclass
class Failing:
    """Stands before a store: raises, or answers late."""

    store: Any
    error: Exception | None = None
    delay: float = 0.0
    score: float | None = None
    limits: list[int] = field(default_factory=list)

    async def search(self, wanted: Any, where: Filter, limit: int) -> Sequence[tuple[str, float]]:
        await self._begin(limit)
        return self._scored(await self.store.search(wanted, where, limit))

    async def nearest(self, wanted: Any, where: Filter, limit: int, ids: Sequence[str]) -> Nearest:
        await self._begin(limit)
        near: Nearest = await self.store.nearest(wanted, where, limit, ids)
        return replace(near, hits=self._scored(near.hits))

    async def _begin(self, limit: int) -> None:
        self.limits.append(limit)
        await asyncio.sleep(self.delay)
        if self.error:
            raise self.error

    def _scored(self, hits: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
        return hits if self.score is None else [(name, self.score) for name, _ in hits]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class Manifest(MemoryManifest):
    """Raises, is late, or gives a view of the test's making."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.delay = 0.0
        self.before_view: Callable[[], WorkspaceView | None] = lambda: None

    async def view(self, scope: Scope) -> WorkspaceView:
        await asyncio.sleep(self.delay)
        if self.error:
            raise self.error
        return self.before_view() or await super().view(scope)


class World:
    """A search service on fakes, and files put into its stores."""

    def __init__(self) -> None:
        self.embedder = FakeEmbedder()
        self.vectors = Failing(MemoryVectorStore())
        self.texts = Failing(MemoryTextStore())
        self.manifest = Manifest()
        self.log = MemoryFileLog()
        self.service = SearchService(
            embedder=self.embedder,
            vectors=self.vectors,
            texts=self.texts,
            manifest=self.manifest,
            log=self.log,
            consumer="indexer",
            settings=SearchSettings(),
        )

    async def put(
        self,
        path: str,
        *texts: str,
        listed: bool = True,
        one_line: bool = False,
        sequence: int = 1,
        **flags: Any,
    ) -> None:
        key, revision = FileKey(SCOPE, path), Revision(1, sequence)
        chunks = []
        for number, text in enumerate(texts):
            name = chunk_id(f"{path}{text}", number, revision)
            terms = " ".join(analyze(text))
            private = bool(flags.get("private"))
            chunks.append(
                Chunk(name, key, text, "", Source.MEMORY, private, "", (), revision, text_hash(text), terms, "")
            )
        await self.vectors.store.upsert([EmbeddedChunk(chunk, vector_of(chunk.text)) for chunk in chunks])
        await self.texts.store.upsert(chunks)
        if listed:
            lines = [1] * len(chunks) if one_line else range(1, len(chunks) + 1)
            places = tuple(Listed(chunk.id, "i", 0, line, line) for line, chunk in zip(lines, chunks, strict=True))
            current = await self.manifest.outline(key)
            outline = Outline(key, revision, "hash", places, entry=current.entry if current else 0, **flags)
            await self.manifest.commit(outline)

    async def search(self, text: str = "ferry harbour", timeout: float = 5.0, **options: Any) -> SearchAnswer:
        query = SearchQuery(text, **({"min_score": 0.0} | options))
        return await self.service.search(SCOPE, query, timeout=timeout)
