"""Chunks with vectors for vector stores, and asking for them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.chunks import Chunk, ChunkRef, text_hash
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.names import Scope
from memoryd.ports import EmbeddedChunk, Filter, VectorStore
from tests.contract.registry import DIMENSIONS
from tests.support.hits import vector_hits

SCOPE = Scope("acme", "main")
NEIGHBOURS = (Scope("acme", "other"), Scope("rival", "main"))
HERE = Filter(SCOPE)
ALL = 1_000


def vector(seed: int) -> NDArray[np.float32]:
    """Make a direction that is always the same for a seed, of length 1."""
    values = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return values / np.linalg.norm(values)


def embedded(seed: int, path: str = "memory/a.md", scope: Scope = SCOPE, **fields: object) -> EmbeddedChunk:
    """Make a chunk whose id depends on seed, scope and path, and whose vector depends on the seed alone."""
    chunk = Chunk(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{scope} {path} {seed}")),
        key=FileKey(scope, path),
        text=f"text {seed}",
        breadcrumb="A > B",
        source=Source.MEMORY,
        private=False,
        date="",
        tags=(),
        birth=Revision(1, seed + 1),
        text_hash=text_hash(f"text {seed}"),
        terms=f"text {seed}",
        heading_terms="a b",
    )
    return EmbeddedChunk(replace(chunk, **fields), vector(seed), sketch(seed))  # type: ignore[arg-type]  # fields of a Chunk


def sketch(seed: int) -> bytes:
    """Make bytes of any values that are always the same for a seed, a few tokens of them."""
    return np.random.default_rng(seed).bytes(DIMENSIONS // 8 * (1 + seed % 5))


async def found(store: VectorStore, where: Filter = HERE, seed: int = 0, limit: int = ALL) -> list[Chunk]:
    return [hit.chunk for hit in await vector_hits(store, vector(seed), where, limit)]


async def found_paths(store: VectorStore, where: Filter) -> list[str]:
    return sorted(chunk.key.path for chunk in await found(store, where))


async def scanned(store: VectorStore, scope: Scope = SCOPE, path: str | None = None) -> list[ChunkRef]:
    return [ref async for page in store.scan(scope, path) for ref in page]


def ids(chunks: Sequence[EmbeddedChunk]) -> list[str]:
    return [embedded.chunk.id for embedded in chunks]
