"""What the vector leg of a search does: find the nearest, then read them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memoryd.ports import Filter, Hit, VectorStore


async def vector_hits(store: VectorStore, vector: NDArray[np.float32], where: Filter, limit: int) -> list[Hit]:
    """Find the nearest chunks, best first; those that are gone when they are read are left out."""
    near = await store.nearest(vector, where, limit, [])
    chunks = await store.chunks(where.scope, [name for name, _ in near.hits])
    return [Hit(chunks[name], score) for name, score in near.hits if name in chunks]
