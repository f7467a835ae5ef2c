"""What every text store does with chunks; what it finds first is in `test_text_ranking`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.files import Revision, Source
from memoryd.domain.names import Scope
from memoryd.ports import Filter, TextStore
from tests.contract.registry import TEXT_STORES, Opened, opened
from tests.contract.text_chunks import HERE, NEIGHBOURS, SCOPE, chunk, found, hits, ids, scanned


@pytest.fixture(params=sorted(TEXT_STORES))
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened[TextStore]]:
    async with opened(TEXT_STORES[request.param], tmp_path) as adapter:
        yield adapter


@pytest.fixture
def store(held: Opened[TextStore]) -> TextStore:
    return held.now


class TestFilter:
    async def test_sources(self, store: TextStore) -> None:
        await store.upsert([chunk("word", "m.md"), chunk("word", "s.jsonl", source=Source.SESSIONS)])
        assert await found(store, "word", replace(HERE, sources=frozenset({Source.MEMORY}))) == ["m.md"]
        assert await found(store, "word", replace(HERE, sources=frozenset({Source.SESSIONS}))) == ["s.jsonl"]
        assert await found(store, "word", replace(HERE, sources=frozenset())) == []

    async def test_tags(self, store: TextStore) -> None:
        tags = {"none.md": (), "one.md": ("plan",), "two.md": ("plan", "日 %*"), "like.md": ("planning", "pla")}
        await store.upsert([chunk("word", path, tags=tags[path]) for path in tags])
        assert sorted(await found(store, "word", replace(HERE, tags=frozenset({"plan"})))) == ["one.md", "two.md"]
        assert await found(store, "word", replace(HERE, tags=frozenset({"plan", "日 %*"}))) == ["two.md"]
        assert await found(store, "word", replace(HERE, tags=frozenset({"pl"}))) == []

    async def test_paths(self, store: TextStore) -> None:
        await store.upsert([chunk("word", f"{n}.md") for n in range(2_000)])
        wanted = frozenset(f"{n}.md" for n in range(0, 280_000, 4))  # more than OpenSearch takes by default
        assert len(await found(store, "word", replace(HERE, paths=wanted))) == 500
        assert await found(store, "word", replace(HERE, paths=frozenset({"7.md", "7", "md"}))) == ["7.md"]
        assert await found(store, "word", replace(HERE, paths=frozenset())) == []

    async def test_ids(self, store: TextStore) -> None:
        chunks = [chunk("word", f"{n}.md") for n in range(200)]
        await store.upsert(chunks)
        wanted = frozenset(each.id for each in chunks[::2])
        others = frozenset(str(uuid.UUID(int=n)) for n in range(20_000))
        assert len(await found(store, "word", replace(HERE, ids=wanted | others))) == 100
        assert await found(store, "word", replace(HERE, ids=frozenset({chunks[7].id}))) == ["7.md"]
        assert await found(store, "word", replace(HERE, ids=frozenset())) == []

    async def test_private_chunks(self, store: TextStore) -> None:
        await store.upsert([chunk("word", "open.md"), chunk("word", "MEMORY.md", private=True)])
        assert await found(store, "word", replace(HERE, include_private=False)) == ["open.md"]
        assert sorted(await found(store, "word")) == ["MEMORY.md", "open.md"]

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
        self, store: TextStore, since: str, until: str, dates: list[str]
    ) -> None:
        kept = ["", "0001-01-01", "1969-12-31", "2026-01-09", "2026-01-10", "2026-01-11", "9999-12-31"]
        await store.upsert([chunk("word", f"{n}.md", date=date) for n, date in enumerate(kept)])
        result = await hits(store, "word", replace(HERE, since=since, until=until))
        assert sorted(hit.chunk.date for hit in result) == dates

    @pytest.mark.parametrize(
        "prefix",
        [
            "",
            "m",
            "memory/",
            "memory/%",
            "memory/_",
            "memory/*",
            "memory/[",
            "memory/日",
            "memory/\\",
            "Z",
            "x" * 4_000,
        ],
    )
    async def test_a_path_prefix_is_plain_text(self, store: TextStore, prefix: str) -> None:
        tails = ["日记", *map(chr, range(ord(" "), ord("~") + 1))]
        names = [
            "MEMORY.md",
            "m.md",
            *(f"memory/{tail}.md" for tail in tails),
            *(f"Memory/{tail}.md" for tail in tails),
        ]
        await store.upsert([chunk("word", name) for name in names])
        expected = sorted(name for name in names if name.startswith(prefix))
        assert sorted(await found(store, "word", replace(HERE, path_prefix=prefix))) == expected


TEXTS = ["word alpha", "word beta", "word 词语"]
DATES = ["", "2026-01-01", "2026-01-02"]
SCOPES = st.sampled_from([SCOPE, SCOPE, SCOPE, *NEIGHBOURS])
TAGS: list[tuple[str, ...]] = [(), (), ("x",), ("x", "y z"), ("日",)]
CHUNKS = st.builds(
    lambda text, path, scope, source, private, date, tags: chunk(
        text, path, scope, source=source, private=private, date=date, tags=tags
    ),
    st.sampled_from(TEXTS),
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
        and (where.ids is None or chunk.id in where.ids)
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=st.lists(CHUNKS, min_size=3, max_size=12, unique_by=lambda c: c.id), where=FILTERS)
async def test_all_filters_together(store: TextStore, chunks: list[Chunk], where: Filter) -> None:
    await store.upsert(chunks)
    result = [hit.chunk.id for hit in await hits(store, "word", where)]
    for scope in {c.key.scope for c in chunks}:
        await store.delete(scope, ids(chunks))
    assert sorted(result) == ids([c for c in chunks if passes(c, where)])


class TestUpsert:
    async def test_a_chunk_comes_back_as_it_was(self, store: TextStore) -> None:
        kept = chunk(
            "第一行\n\tline «two» 🦀\n",
            "memory/日记 %_*[.md",
            breadcrumb="A > B",
            source=Source.SESSIONS,
            private=True,
            date="2026-02-28",
            tags=("a b", "日", ""),
            birth=Revision(3, 1 << 40),
        )
        await store.upsert([kept])
        (hit,) = await hits(store, "第一行")
        assert hit.chunk == kept
        assert (hit.chunk.terms, hit.chunk.heading_terms) == (kept.terms, kept.heading_terms)
        assert await scanned(store) == [ChunkRef(kept.id, kept.key.path, kept.birth)]

    async def test_the_same_again_is_one_chunk(self, store: TextStore) -> None:
        for _ in range(2):
            await store.upsert([chunk("word"), chunk("word too")])
        await store.upsert([chunk("word"), chunk("word")])
        assert len(await found(store, "word")) == len(await scanned(store)) == 2

    async def test_an_id_has_one_content_the_last(self, store: TextStore) -> None:
        kept = chunk("zeppelin")
        await store.upsert([kept])
        await store.upsert([replace(kept, text="balloon", terms="balloon")])
        assert await found(store, "zeppelin") == []
        assert [hit.chunk.text for hit in await hits(store, "balloon")] == ["balloon"]

    async def test_nothing_is_fine(self, store: TextStore) -> None:
        await store.upsert([])
        assert await found(store, "word") == []
        assert await scanned(store) == []

    async def test_a_chunk_without_terms(self, store: TextStore) -> None:
        await store.upsert([chunk("---", heading_terms="")])
        assert len(await scanned(store)) == 1

    async def test_a_big_batch_of_several_scopes(self, store: TextStore) -> None:
        here = [chunk(f"word {n}", f"{n // 8}.md") for n in range(2_500)]
        there = [chunk(f"word {n}", scope=scope) for scope in NEIGHBOURS for n in range(100)]
        await store.upsert([*here, *there])
        assert sorted(ref.id for ref in await scanned(store)) == ids(here)
        for scope in NEIGHBOURS:
            assert len(await scanned(store, scope)) == 100

    async def test_many_at_once_are_all_there(self, store: TextStore) -> None:
        batches = [[chunk(f"word {n} {k}", f"{n}.md") for k in range(10)] for n in range(20)]

        async def write(batch: list[Chunk]) -> None:
            await store.upsert(batch)
            assert sorted(ref.id for ref in await scanned(store, path=batch[0].key.path)) == ids(batch)

        await asyncio.gather(*(write(batch) for batch in batches))
        assert len(await found(store, "word")) == 200

    async def test_more_tenants_than_a_store_keeps_open(self, store: TextStore) -> None:
        scopes = [Scope(f"t{n}", "main") for n in range(80)]
        await store.upsert([chunk(f"word {scope}", scope=scope) for scope in scopes])
        for scope in scopes:
            assert [hit.chunk.text for hit in await hits(store, "word", Filter(scope))] == [f"word {scope}"]
        await store.upsert([chunk(f"again {scope}", scope=scope) for scope in scopes])
        assert [len(await scanned(store, scope)) for scope in scopes] == [2] * 80


class TestDelete:
    async def test_of_some_chunks(self, store: TextStore) -> None:
        chunks = [chunk(f"word {n}") for n in range(10)]
        await store.upsert(chunks)
        await store.delete(SCOPE, [c.id for c in chunks[:4]])
        assert sorted(hit.chunk.id for hit in await hits(store, "word")) == ids(chunks[4:])
        assert sorted(ref.id for ref in await scanned(store)) == ids(chunks[4:])

    async def test_of_unknown_ids(self, store: TextStore) -> None:
        await store.delete(SCOPE, [str(uuid.uuid4())])
        await store.upsert([chunk("word")])
        await store.delete(SCOPE, [str(uuid.uuid4()), str(uuid.uuid4())])
        await store.delete(SCOPE, [])
        assert len(await found(store, "word")) == 1

    async def test_of_another_scopes_ids_removes_nothing(self, store: TextStore) -> None:
        kept = chunk("word")
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            await store.delete(scope, [kept.id])
        assert len(await found(store, "word")) == 1

    async def test_what_was_removed_can_be_written_again(self, store: TextStore) -> None:
        kept = chunk("word")
        await store.upsert([kept])
        await store.delete(SCOPE, [kept.id])
        await store.upsert([kept])
        assert len(await found(store, "word")) == 1


class TestScopes:
    async def test_no_call_sees_another_scope(self, store: TextStore) -> None:
        everywhere = (SCOPE, *NEIGHBOURS)
        same = str(uuid.uuid4())
        await store.upsert([chunk(f"word {scope}", scope=scope, id=same) for scope in everywhere])
        for scope in everywhere:
            assert [hit.chunk.text for hit in await hits(store, "word", Filter(scope))] == [f"word {scope}"]
            assert [hit.chunk.key.scope for hit in await hits(store, "word", Filter(scope))] == [scope]
            assert len(await scanned(store, scope)) == len(await scanned(store, scope, "memory/a.md")) == 1
        assert await scanned(store, SCOPE, "memory/b.md") == []
        await store.delete(SCOPE, [same])
        assert [len(await scanned(store, scope)) for scope in everywhere] == [0, 1, 1]

    async def test_a_scope_that_has_nothing(self, store: TextStore) -> None:
        await store.upsert([chunk("word")])
        for scope in (*NEIGHBOURS, Scope("acme-2", "main"), Scope("acme", "mai")):
            assert await found(store, "word", Filter(scope)) == []
            assert await scanned(store, scope) == []


class TestChunks:
    async def test_are_read_by_id(self, store: TextStore) -> None:
        chunks = [chunk(f"word {n}", f"{n}.md") for n in range(1_200)]
        await store.upsert(chunks)
        wanted = [*ids(chunks[:1_100]), str(uuid.uuid4())]
        assert await store.chunks(SCOPE, wanted) == {each.id: each for each in chunks[:1_100]}
        assert await store.chunks(SCOPE, []) == {}

    async def test_of_another_scope_there_are_none(self, store: TextStore) -> None:
        kept = chunk("word")
        await store.upsert([kept])
        for scope in NEIGHBOURS:
            assert await store.chunks(scope, [kept.id]) == {}


class TestScan:
    async def test_of_one_file(self, store: TextStore) -> None:
        await store.upsert([chunk(f"word {path}", path) for path in ("a.md", "a.md.md", "A.md", "b/a.md")])
        assert [ref.path for ref in await scanned(store, SCOPE, "a.md")] == ["a.md"]

    async def test_what_is_there_all_along_comes_once_whatever_is_written_meanwhile(self, store: TextStore) -> None:
        chunks = [chunk(f"word {n}", f"{n}.md") for n in range(2_200)]
        stays, goes = chunks[::2], chunks[1::2]
        await store.upsert(chunks)
        seen: list[str] = []
        async for page in store.scan(SCOPE):
            seen += [ref.id for ref in page]
            await store.delete(SCOPE, [c.id for c in goes])
            await store.upsert([chunk(f"new {len(seen)}")])
        assert len(seen) == len(set(seen))
        assert set(seen) >= {c.id for c in stays}


class TestRestart:
    async def test_everything_is_there_again(self, held: Opened[TextStore]) -> None:
        chunks = [chunk(f"word {n}", date="2026-01-01") for n in range(200)]
        await held.now.upsert(chunks)
        await held.now.delete(SCOPE, [c.id for c in chunks[:50]])
        before = await hits(held.now, "word 77")
        store = await held.again()
        assert await hits(store, "word 77") == before
        assert sorted(ref.id for ref in await scanned(store)) == ids(chunks[50:])
        await store.upsert([chunk("word new")])
        assert len(await found(store, "word")) == 151
