"""What every vector store does."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memoryd.domain.chunks import Chunk, ChunkRef, text_hash
from memoryd.domain.files import Revision, Source
from memoryd.errors import InvalidInputError
from memoryd.ports import EmbeddedChunk, Filter, VectorStore
from tests.contract.registry import DIMENSIONS, VECTOR_STORES, Opened, opened
from tests.contract.vector_chunks import (
    ALL,
    HERE,
    NEIGHBOURS,
    SCOPE,
    embedded,
    found,
    found_paths,
    ids,
    scanned,
    vector,
)
from tests.support.hits import vector_hits


@pytest.fixture(params=sorted(VECTOR_STORES))
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened[VectorStore]]:
    async with opened(VECTOR_STORES[request.param], tmp_path) as adapter:
        yield adapter


@pytest.fixture
def store(held: Opened[VectorStore]) -> VectorStore:
    return held.now


DATES = ["", "2026-01-01", "2026-01-02"]
TAGS: list[tuple[str, ...]] = [(), (), ("x",), ("x", "y z"), ("日",)]
SCOPES = st.sampled_from([SCOPE, SCOPE, SCOPE, *NEIGHBOURS])
CHUNKS = st.builds(
    lambda seed, path, scope, source, private, date, tags: embedded(
        seed, path, scope, source=source, private=private, date=date, tags=tags
    ),
    st.integers(0, 50),
    st.sampled_from(["a/x.md", "a/y.md", "b/x.md"]),
    SCOPES,
    st.sampled_from(Source),
    st.booleans(),
    st.sampled_from(DATES),
    st.sampled_from(TAGS),
)
FILTERS = st.builds(
    Filter,
    SCOPES,
    st.sampled_from([frozenset(Source), frozenset({Source.MEMORY}), frozenset({Source.SESSIONS})]),
    st.sampled_from(["", "", "a", "a/x"]),
    st.sampled_from(DATES),
    st.sampled_from(DATES),
    st.booleans(),
    st.sampled_from([frozenset(tags) for tags in TAGS]),
    st.sampled_from([None, None, frozenset({"a/x.md", "b/x.md"}), frozenset({"a"})]),
)


def passes(chunk: Chunk, where: Filter) -> bool:
    dated = not chunk.date or (where.since <= chunk.date and (not where.until or chunk.date <= where.until))
    return (
        dated
        and chunk.key.scope == where.scope
        and chunk.source in where.sources
        and chunk.key.path.startswith(where.path_prefix)
        and (where.include_private or not chunk.private)
        and where.tags <= set(chunk.tags)
        and (where.paths is None or chunk.key.path in where.paths)
    )


async def test_chunks_are_counted_over_all_scopes(store: VectorStore) -> None:
    assert await store.count() == 0
    chunks = [embedded(n, scope=scope) for n, scope in enumerate([SCOPE, SCOPE, NEIGHBOURS[0]])]
    await store.upsert(chunks)
    assert await store.count() == 3
    await store.delete(SCOPE, [chunks[0].chunk.id])
    assert await store.count() == 2


class TestUpsert:
    async def test_a_chunk_comes_back_as_it_was(self, store: VectorStore) -> None:
        kept = embedded(
            0,
            "memory/日记 %_*[.md",
            text="第一行\n\tline «two» 🦀\n",
            breadcrumb="",
            source=Source.SESSIONS,
            private=True,
            date="2026-02-28",
            tags=("a b", "日", ""),
            birth=Revision(3, 1 << 40),
            terms="第一 一行",
            heading_terms="",
        )
        await store.upsert([kept])
        (hit,) = await vector_hits(store, vector(0), HERE, 10)
        assert hit.chunk == kept.chunk
        assert (hit.chunk.terms, hit.chunk.heading_terms) == (kept.chunk.terms, kept.chunk.heading_terms)
        assert hit.score == pytest.approx(1.0, abs=1e-5)
        assert await scanned(store) == [ChunkRef(kept.chunk.id, kept.chunk.key.path, kept.chunk.birth)]

    async def test_the_same_again_is_one_chunk(self, store: VectorStore) -> None:
        for _ in range(2):
            await store.upsert([embedded(0), embedded(1)])
        assert len(await found(store)) == len(await scanned(store)) == 2

    async def test_nothing_is_fine(self, store: VectorStore) -> None:
        await store.upsert([])
        assert await found(store) == []
        assert await scanned(store) == []

    async def test_a_big_batch_of_several_scopes(self, store: VectorStore) -> None:
        here = [embedded(n, f"{n // 8}.md") for n in range(2_500)]
        there = [embedded(n, scope=NEIGHBOURS[0]) for n in range(100)]
        await store.upsert([*here, *there])
        refs = await scanned(store)
        assert sorted(ref.id for ref in refs) == sorted(ids(here))
        assert len(await scanned(store, NEIGHBOURS[0])) == 100

    async def test_many_at_once_are_all_there(self, store: VectorStore) -> None:
        batches = [[embedded(n * 10 + k, f"{n}.md") for k in range(10)] for n in range(20)]
        await asyncio.gather(*(store.upsert(batch) for batch in batches))
        assert sorted(chunk.id for chunk in await found(store)) == sorted(i for batch in batches for i in ids(batch))

    @pytest.mark.parametrize(
        "wrong",
        [np.ones(DIMENSIONS + 1), np.ones(DIMENSIONS - 1), np.ones((1, DIMENSIONS)), np.full(DIMENSIONS, np.nan)],
        ids=["longer", "shorter", "matrix", "nan"],
    )
    async def test_a_wrong_vector_is_refused_and_nothing_of_its_batch_written(
        self, store: VectorStore, wrong: NDArray[np.float32]
    ) -> None:
        with pytest.raises(InvalidInputError, match=str(DIMENSIONS)):
            await store.upsert([embedded(0), replace(embedded(1), vector=wrong)])
        assert await scanned(store) == []
        with pytest.raises(InvalidInputError, match=str(DIMENSIONS)):
            await vector_hits(store, wrong, HERE, 10)


class TestSearch:
    async def test_the_order_and_the_scores_are_those_of_the_cosine(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(1, 300)]
        await store.upsert(chunks)
        hits = await vector_hits(store, vector(0), HERE, 20)
        cosines = {c.chunk.id: float(c.vector @ vector(0)) for c in chunks}
        best = sorted(cosines, key=lambda i: -cosines[i])[:20]
        assert [hit.chunk.id for hit in hits] == best
        assert [hit.score for hit in hits] == pytest.approx([cosines[i] for i in best], abs=1e-5)

    async def test_it_gives_no_more_than_asked_for(self, store: VectorStore) -> None:
        await store.upsert([embedded(n) for n in range(10)])
        assert [len(await found(store, limit=limit)) for limit in (1, 9, 10, 50)] == [1, 9, 10, 10]

    async def test_sources(self, store: VectorStore) -> None:
        await store.upsert([embedded(0, "m.md"), embedded(1, "s.jsonl", source=Source.SESSIONS)])
        assert await found_paths(store, replace(HERE, sources=frozenset({Source.MEMORY}))) == ["m.md"]
        assert await found_paths(store, replace(HERE, sources=frozenset({Source.SESSIONS}))) == ["s.jsonl"]
        assert await found_paths(store, replace(HERE, sources=frozenset())) == []

    async def test_private_chunks(self, store: VectorStore) -> None:
        await store.upsert([embedded(0, "open.md"), embedded(1, "MEMORY.md", private=True)])
        assert await found_paths(store, replace(HERE, include_private=False)) == ["open.md"]
        assert await found_paths(store, HERE) == ["MEMORY.md", "open.md"]

    async def test_tags(self, store: VectorStore) -> None:
        tags = {"none.md": (), "one.md": ("plan",), "two.md": ("plan", "日 %*"), "like.md": ("planning", "pla")}
        await store.upsert([embedded(n, path, tags=tags[path]) for n, path in enumerate(tags)])
        assert await found_paths(store, replace(HERE, tags=frozenset({"plan"}))) == ["one.md", "two.md"]
        assert await found_paths(store, replace(HERE, tags=frozenset({"plan", "日 %*"}))) == ["two.md"]
        assert await found_paths(store, replace(HERE, tags=frozenset({"pl"}))) == []

    async def test_paths(self, store: VectorStore) -> None:
        await store.upsert([embedded(n, f"{n}.md") for n in range(2_000)])
        wanted = {f"{n}.md" for n in range(0, 4_000, 4)}
        assert len(await found_paths(store, replace(HERE, paths=frozenset(wanted)))) == 500
        assert await found_paths(store, replace(HERE, paths=frozenset({"7.md", "7", "md"}))) == ["7.md"]
        assert await found_paths(store, replace(HERE, paths=frozenset())) == []

    async def test_ids(self, store: VectorStore) -> None:
        chunks = [embedded(n, f"{n}.md") for n in range(200)]
        await store.upsert(chunks)
        wanted = frozenset(each.chunk.id for each in chunks[::2])
        others = frozenset(str(uuid.UUID(int=n)) for n in range(20_000))
        assert len(await found_paths(store, replace(HERE, ids=wanted | others))) == 100
        assert await found_paths(store, replace(HERE, ids=frozenset({chunks[7].chunk.id}))) == ["7.md"]
        assert await found_paths(store, replace(HERE, ids=frozenset())) == []

    @pytest.mark.parametrize(
        ("since", "until", "dates"),
        [
            ("2026-01-10", "2026-01-10", ["", "2026-01-10"]),
            ("2026-01-10", "", ["", "2026-01-10", "2026-01-11", "9999-12-31"]),
            ("", "2026-01-09", ["", "0001-01-01", "1969-12-31", "2026-01-09"]),
            ("2026-02-01", "2026-01-01", [""]),
            ("", "", ["", "0001-01-01", "1969-12-31", "2026-01-09", "2026-01-10", "2026-01-11", "9999-12-31"]),
        ],
    )
    async def test_dates_bound_dated_chunks_only(
        self, store: VectorStore, since: str, until: str, dates: list[str]
    ) -> None:
        kept = ["", "0001-01-01", "1969-12-31", "2026-01-09", "2026-01-10", "2026-01-11", "9999-12-31"]
        await store.upsert([embedded(n, date=date) for n, date in enumerate(kept)])
        assert sorted(chunk.date for chunk in await found(store, replace(HERE, since=since, until=until))) == dates

    @pytest.mark.parametrize(
        "prefix", ["", "m", "memory/", "memory/%", "memory/_", "memory/*", "memory/[", "memory/日", "Z"]
    )
    async def test_a_path_prefix_is_plain_text(self, store: VectorStore, prefix: str) -> None:
        tails = ["a", "%", "_", "*", "[a]", "?", "\\", "日记", ".", "^$"]
        names = [
            "MEMORY.md",
            "m.md",
            *(f"memory/{tail}.md" for tail in tails),
            *(f"Memory/{tail}.md" for tail in tails),
        ]
        await store.upsert([embedded(n, name) for n, name in enumerate(names)])
        expected = sorted(name for name in names if name.startswith(prefix))
        assert await found_paths(store, replace(HERE, path_prefix=prefix)) == expected

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(chunks=st.lists(CHUNKS, min_size=5, max_size=20, unique_by=lambda c: c.chunk.id), where=FILTERS)
    async def test_all_filters_together(self, store: VectorStore, chunks: list[EmbeddedChunk], where: Filter) -> None:
        await store.upsert(chunks)
        hits = sorted(chunk.id for chunk in await found(store, where))
        for scope in {c.chunk.key.scope for c in chunks}:
            await store.delete(scope, ids(chunks))
        assert hits == sorted(c.chunk.id for c in chunks if passes(c.chunk, where))


class TestCosines:
    async def test_they_are_those_of_the_chunks_that_are_there(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(1, 80)]
        await store.upsert(chunks)
        cosines = await store.cosines(vector(0), SCOPE, [*ids(chunks[:60]), str(uuid.uuid4())])
        assert cosines == pytest.approx({c.chunk.id: float(c.vector @ vector(0)) for c in chunks[:60]}, abs=1e-5)
        assert await store.cosines(vector(0), SCOPE, []) == {}

    async def test_of_another_scope_there_are_none(self, store: VectorStore) -> None:
        kept = embedded(0)
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            assert await store.cosines(vector(0), scope, [kept.chunk.id]) == {}


class TestNearest:
    async def test_it_is_a_search_with_cosines(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(80)]
        await store.upsert(chunks)
        gone = str(uuid.uuid4())
        near = await store.nearest(vector(0), HERE, 60, [*ids(chunks), gone])
        assert list(near.hits) == [(hit.chunk.id, hit.score) for hit in await vector_hits(store, vector(0), HERE, 60)]
        assert near.cosines == {**await store.cosines(vector(0), SCOPE, ids(chunks)), gone: None}
        assert (await store.nearest(vector(0), HERE, 1, [])).cosines == {}

    async def test_of_another_scope_there_is_nothing(self, store: VectorStore) -> None:
        kept = embedded(0)
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            near = await store.nearest(vector(0), Filter(scope), 9, [kept.chunk.id])
            assert (list(near.hits), near.cosines) == ([], {kept.chunk.id: None})


class TestChunks:
    async def test_they_are_read_by_id(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(1_200)]
        await store.upsert(chunks)
        wanted = [str(uuid.uuid4()), *ids(chunks[:1_100])]
        assert await store.chunks(SCOPE, wanted) == {c.chunk.id: c.chunk for c in chunks[:1_100]}
        assert await store.chunks(SCOPE, []) == {}

    async def test_of_another_scope_there_are_none(self, store: VectorStore) -> None:
        kept = embedded(0)
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            assert await store.chunks(scope, [kept.chunk.id]) == {}


class TestSketches:
    async def test_they_are_read_by_id(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(120)]
        await store.upsert(chunks)
        wanted = [str(uuid.uuid4()), *ids(chunks[:100])]
        assert await store.sketches(SCOPE, wanted) == {c.chunk.id: c.sketch for c in chunks[:100]}
        assert await store.sketches(SCOPE, []) == {}

    async def test_a_chunk_without_one_is_left_out(self, store: VectorStore) -> None:
        kept, bare = embedded(0), replace(embedded(1), sketch=b"")
        await store.upsert([kept, bare])
        assert await store.sketches(SCOPE, ids([kept, bare])) == {kept.chunk.id: kept.sketch}
        assert {chunk.id for chunk in await found(store)} == set(ids([kept, bare]))

    async def test_of_another_scope_there_are_none(self, store: VectorStore) -> None:
        kept = embedded(0)
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            assert await store.sketches(scope, [kept.chunk.id]) == {}


class TestEmbeddings:
    async def test_by_the_hash_of_the_text(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(1_500)]
        await store.upsert(chunks)
        hashes = [c.chunk.text_hash for c in chunks]
        known = await store.embeddings(SCOPE.tenant, [*hashes, text_hash("never embedded"), hashes[0]])
        assert sorted(known) == sorted(hashes)
        for c in chunks:
            assert known[c.chunk.text_hash].vector.dtype == np.float32
            np.testing.assert_allclose(known[c.chunk.text_hash].vector, c.vector, atol=1e-6)
            assert known[c.chunk.text_hash].sketch == c.sketch
        assert await store.embeddings(SCOPE.tenant, []) == {}

    async def test_within_the_tenant_in_any_workspace(self, store: VectorStore) -> None:
        await store.upsert([embedded(0, scope=NEIGHBOURS[0]), embedded(1, scope=NEIGHBOURS[1])])
        hashes = [text_hash("text 0"), text_hash("text 1")]
        assert list(await store.embeddings("acme", hashes)) == hashes[:1]
        assert list(await store.embeddings("rival", hashes)) == hashes[1:]

    async def test_of_a_text_that_is_in_several_chunks(self, store: VectorStore) -> None:
        await store.upsert([embedded(0, f"{n}.md") for n in range(50)])
        known = await store.embeddings("acme", [text_hash("text 0")])
        np.testing.assert_allclose(known[text_hash("text 0")].vector, vector(0), atol=1e-6)


class TestDelete:
    async def test_of_some_chunks(self, store: VectorStore) -> None:
        chunks = [embedded(n) for n in range(10)]
        await store.upsert(chunks)
        await store.delete(SCOPE, ids(chunks[:4]))
        assert sorted(chunk.id for chunk in await found(store)) == sorted(ids(chunks[4:]))
        assert sorted(ref.id for ref in await scanned(store)) == sorted(ids(chunks[4:]))
        assert await store.embeddings("acme", [chunks[0].chunk.text_hash]) == {}

    async def test_of_unknown_ids(self, store: VectorStore) -> None:
        kept = embedded(0)
        await store.upsert([kept])
        await store.delete(SCOPE, [str(uuid.uuid4()), str(uuid.uuid4())])
        await store.delete(SCOPE, [])
        assert [chunk.id for chunk in await found(store)] == [kept.chunk.id]

    async def test_of_another_scopes_ids_removes_nothing(self, store: VectorStore) -> None:
        kept = embedded(0)
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            await store.delete(scope, [kept.chunk.id])
        assert [chunk.id for chunk in await found(store)] == [kept.chunk.id]

    async def test_what_was_removed_can_be_written_again(self, store: VectorStore) -> None:
        await store.upsert([embedded(0)])
        await store.delete(SCOPE, ids([embedded(0)]))
        await store.upsert([embedded(0)])
        assert len(await found(store)) == 1


class TestScopes:
    async def test_no_call_sees_another_scope(self, store: VectorStore) -> None:
        everywhere = (SCOPE, *NEIGHBOURS)
        await store.upsert([embedded(0, scope=scope, text=str(scope)) for scope in everywhere])
        for scope in everywhere:
            assert [chunk.text for chunk in await found(store, Filter(scope))] == [str(scope)]
            assert len(await scanned(store, scope)) == len(await scanned(store, scope, "memory/a.md")) == 1
        assert await scanned(store, SCOPE, "memory/b.md") == []

    async def test_a_scan_of_one_file(self, store: VectorStore) -> None:
        await store.upsert([embedded(n, path) for n, path in enumerate(["a.md", "a.md", "a.md.md", "A.md"])])
        assert [ref.path for ref in await scanned(store, SCOPE, "a.md")] == ["a.md", "a.md"]


class TestRestart:
    async def test_everything_is_there_again(self, held: Opened[VectorStore]) -> None:
        chunks = [embedded(n, date="2026-01-01") for n in range(200)]
        await held.now.upsert(chunks)
        await held.now.delete(SCOPE, ids(chunks[:50]))
        before = await vector_hits(held.now, vector(0), HERE, ALL)
        store = await held.again()
        assert await vector_hits(store, vector(0), HERE, ALL) == before
        assert sorted(chunk.id for chunk in await found(store, replace(HERE, path_prefix="mem"))) == sorted(
            ids(chunks[50:])
        )
        await store.upsert([embedded(999)])
        assert len(await found(store)) == 151
