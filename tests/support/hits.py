"""What a leg of a search does: find chunks, then read them. Those that are gone when they are read are left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.names import Scope
from memoryd.ports import Filter, Hit, QueryTerm, TextStore, VectorStore


async def vector_hits(store: VectorStore, vector: NDArray[np.float32], where: Filter, limit: int) -> list[Hit]:
    """Find the nearest chunks, best first."""
    return await _read(store, where.scope, (await store.nearest(vector, where, limit, [])).hits)


async def text_hits(store: TextStore, terms: Sequence[QueryTerm], where: Filter, limit: int) -> list[Hit]:
    """Find the chunks that hold any of the terms, best first."""
    return await _read(store, where.scope, await store.search(terms, where, limit))


async def _read(store: TextStore | VectorStore, scope: Scope, found: Sequence[tuple[str, float]]) -> list[Hit]:
    chunks = await store.chunks(scope, [name for name, _ in found])
    return [Hit(chunks[name], score) for name, score in found if name in chunks]
