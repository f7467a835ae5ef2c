"""Which of the chunks that an outline lists are not held by both stores."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.domain.outlines import Outline
from memoryd.ports import ChunkStore


async def lost_chunks(outline: Outline, stores: Sequence[ChunkStore]) -> frozenset[str]:
    """List the ids of an outline that one of the stores lacks."""
    lost: set[str] = set()
    for store in stores:
        missing = set(outline.by_id)
        async for page in store.scan(outline.key.scope, outline.key.path):
            missing.difference_update(chunk.id for chunk in page)
        lost |= missing
    return frozenset(lost)
