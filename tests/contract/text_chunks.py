"""Chunks for text stores, and asking for them as the search service does."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from memoryd.domain.chunks import Chunk, ChunkRef, text_hash
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.text import analyze, analyze_query, heading_terms, term_weights
from memoryd.ports import Filter, Hit, QueryTerm, TextStore
from tests.support.hits import text_hits

SCOPE = Scope("acme", "main")
NEIGHBOURS = (Scope("acme", "other"), Scope("rival", "main"))
HERE = Filter(SCOPE)
ALL = 1_000


def chunk(text: str, path: str = "memory/a.md", scope: Scope = SCOPE, **fields: object) -> Chunk:
    """Make a chunk as an indexer does; its id depends on text, scope and path."""
    breadcrumb = str(fields.get("breadcrumb", ""))
    made = Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{scope} {path} {text}")),
        key=FileKey(scope, path),
        text=text,
        breadcrumb=breadcrumb,
        source=Source.MEMORY,
        private=False,
        date="",
        tags=(),
        birth=Revision(1, 1),
        text_hash=text_hash(text),
        terms=" ".join(analyze(text)),
        heading_terms=" ".join(heading_terms(breadcrumb, path)),
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # fields of a Chunk


def terms(query: str) -> list[QueryTerm]:
    return [QueryTerm(term, weight) for term, weight in term_weights(analyze_query(query)).items()]


async def hits(store: TextStore, query: str, where: Filter = HERE, limit: int = ALL) -> Sequence[Hit]:
    return await text_hits(store, terms(query), where, limit)


async def found(store: TextStore, query: str, where: Filter = HERE, limit: int = ALL) -> list[str]:
    """Search and give the paths, best first."""
    return [hit.chunk.key.path for hit in await hits(store, query, where, limit)]


async def scanned(store: TextStore, scope: Scope = SCOPE, path: str | None = None) -> list[ChunkRef]:
    return [ref async for page in store.scan(scope, path) for ref in page]


def ids(chunks: Sequence[Chunk]) -> list[str]:
    return sorted(chunk.id for chunk in chunks)
