"""Both text stores rank alike, with the same scores: one analysis, one BM25."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.domain.chunking import Limits, chunk_markdown
from memoryd.domain.chunks import Chunk
from tests.contract.registry import TEXT_STORES
from tests.contract.text_chunks import ALL, HERE, chunk, terms
from tests.repo.checkout import ROOT
from tests.support.example_queries import EXAMPLE_QUERIES
from tests.support.hits import text_hits

WORKSPACE = ROOT / "examples/workspace"


def example_chunks() -> list[Chunk]:
    """Cut the example workspace into small pieces."""
    return [
        chunk(piece.text, str(file.relative_to(WORKSPACE)), breadcrumb=piece.breadcrumb)
        for file in sorted(WORKSPACE.rglob("*.md"))
        for piece in chunk_markdown(
            file.read_text(encoding="utf-8"),
            count=lambda texts: [len(text) // 4 + 1 for text in texts],
            limits=Limits(target_tokens=12),
        ).pieces
    ]


async def test_every_example_query_gets_the_same_chunks_in_the_same_order(tmp_path: Path) -> None:
    chunks = example_chunks()
    assert len(chunks) > 200
    stores = [await TEXT_STORES[name](tmp_path) for name in sorted(TEXT_STORES)]
    for store in stores:
        await store.upsert(chunks)
    for query in EXAMPLE_QUERIES:
        first, *others = [await text_hits(store, terms(query.text), HERE, ALL) for store in stores]
        for other in others:
            assert [hit.chunk.id for hit in other[:10]] == [hit.chunk.id for hit in first[:10]], query.text
            scores = {hit.chunk.id: hit.score for hit in other}
            assert scores == pytest.approx({hit.chunk.id: hit.score for hit in first}, rel=1e-5), query.text
    for store in stores:
        await store.close()
