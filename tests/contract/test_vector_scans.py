"""What every vector store tells where the caller knows most chunks already."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.domain.chunks import ChunkRef
from memoryd.ports import VectorStore
from tests.contract.registry import VECTOR_STORES, opened
from tests.contract.vector_chunks import NEIGHBOURS, SCOPE, embedded, ids


@pytest.fixture(params=sorted(VECTOR_STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorStore]:
    async with opened(VECTOR_STORES[request.param], tmp_path) as adapter:
        yield adapter.now


async def test_a_scan_tells_all_of_what_is_not_known(store: VectorStore) -> None:
    chunks = [embedded(n, f"{n // 8}.md") for n in range(1_500)]
    await store.upsert([*chunks, embedded(9_999, scope=NEIGHBOURS[0])])
    known = set(ids(chunks[:1_300]))
    refs: dict[str, ChunkRef] = {}
    async for page in store.scan(SCOPE, known=known):
        for ref in page:
            assert ref.id not in refs
            refs[ref.id] = ref
            known.discard(ref.id)  # as a reader does that looks for what is missing
    assert sorted(refs) == sorted(ids(chunks))
    assert not known
    for each in chunks[1_300:]:
        assert refs[each.chunk.id] == ChunkRef(each.chunk.id, each.chunk.key.path, each.chunk.birth)
