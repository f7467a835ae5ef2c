"""What the text store on OpenSearch does beyond the port: its server goes and comes, and is shared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from memoryd.adapters.opensearch.connection import connect
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.opensearch.store import OpenSearchTextStore
from memoryd.domain.files import Source
from memoryd.errors import STORE_LOST, InvalidInputError, UnavailableError
from memoryd.ports import Filter, QueryTerm, TextStore
from tests.contract.text_chunks import HERE, NEIGHBOURS, SCOPE, chunk, found, hits, ids, scanned, terms
from tests.servers.opensearch import OpenSearchServer, index_name, open_text_store, opensearch, opensearch_url
from tests.servers.process import free_port
from tests.support.eventually import eventually
from tests.support.hits import text_hits

CALLS: dict[str, Callable[[TextStore], Awaitable[Any]]] = {
    "upsert": lambda store: store.upsert([chunk("word again")]),
    "delete": lambda store: store.delete(SCOPE, [chunk("nothing").id]),
    "search": lambda store: store.search(terms("word"), HERE, 10),
    "chunks": lambda store: store.chunks(SCOPE, [chunk("word").id]),
    "scan": scanned,
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[OpenSearchTextStore]:
    store = await open_text_store(tmp_path)
    yield store
    await store.close()


@pytest.fixture
def server() -> OpenSearchServer:
    """Give the server of our own, which a test may stop; it runs."""
    opensearch().process.start()
    return opensearch()


class TestOutage:
    async def test_calls_fail_meanwhile_and_then_everything_is_there_again(
        self, server: OpenSearchServer, tmp_path: Path
    ) -> None:
        store = await OpenSearchTextStore.open(OpenSearchSettings(url=server.url), index_name(tmp_path))
        await store.upsert([chunk("word")])
        server.process.kill()
        for call in CALLS.values():
            with pytest.raises(
                UnavailableError, match=f"^OpenSearch at {server.url} can't be reached: see that it runs"
            ):
                await call(store)
        server.process.start()
        assert await found(store, "word") == ["memory/a.md"]
        for call in CALLS.values():
            await call(store)
        await store.close()

    async def test_a_server_that_hangs_is_waited_for_no_longer_than_the_timeout(
        self, server: OpenSearchServer, tmp_path: Path
    ) -> None:
        settings = OpenSearchSettings(url=server.url, timeout=0.5)
        store = await OpenSearchTextStore.open(settings, index_name(tmp_path))
        server.process.pause()
        with pytest.raises(UnavailableError, match=r"did not answer within 0\.5 s"):
            await found(store, "word")
        server.process.resume()
        await store.close()

        async def answer() -> list[str]:
            try:
                return await found(later, "word")
            except UnavailableError:
                return ["not yet"]

        later = await OpenSearchTextStore.open(OpenSearchSettings(url=server.url), index_name(tmp_path))
        nothing: list[str] = []
        await eventually(answer, nothing)
        await later.close()

    async def test_a_store_does_not_open_without_its_server(self) -> None:
        with pytest.raises(UnavailableError, match="can't be reached"):
            await OpenSearchTextStore.open(OpenSearchSettings(url=f"http://127.0.0.1:{free_port()}"), "any")

    async def test_a_lost_index_is_not_made_again_with_guessed_types(
        self, store: OpenSearchTextStore, tmp_path: Path
    ) -> None:
        await store.upsert([chunk("word")])
        client = connect(OpenSearchSettings(url=opensearch_url()))
        await client.indices.delete(index=f"{index_name(tmp_path)}.{SCOPE.tenant}.index")
        with pytest.raises(UnavailableError, match="has lost an index") as failure:
            await store.upsert([chunk("word")])
        assert failure.value.reason == STORE_LOST
        assert await client.cat.indices(index=f"{index_name(tmp_path)}*", format="json") == []
        await client.close()
        assert await found(store, "word") == []
        await store.ensure()
        await store.upsert([chunk("a new word", "b.md")])
        assert await found(store, "word", replace(HERE, path_prefix="b")) == ["b.md"]


class TestIndex:
    async def test_several_processes_make_it_at_once(self, tmp_path: Path) -> None:
        stores = await asyncio.gather(*(open_text_store(tmp_path) for _ in range(8)))
        await asyncio.gather(*(store.upsert([chunk(f"word {n}")]) for n, store in enumerate(stores)))
        for store in stores:
            assert len(await found(store, "word")) == len(stores)
            await store.close()

    async def test_one_for_all_tenants_keeps_them_apart_too(self, store: OpenSearchTextStore, tmp_path: Path) -> None:
        settings = OpenSearchSettings(url=opensearch_url(), index_per_tenant=False)
        shared = await OpenSearchTextStore.open(settings, index_name(tmp_path))
        everywhere = (SCOPE, *NEIGHBOURS)
        await shared.upsert([chunk("word", scope=scope, id=chunk("word").id) for scope in everywhere])
        for scope in everywhere:
            assert [hit.chunk.key.scope for hit in await hits(shared, "word", Filter(scope))] == [scope]
            assert len(await scanned(shared, scope)) == 1
        await shared.delete(SCOPE, [chunk("word").id])
        assert [len(await scanned(shared, scope)) for scope in everywhere] == [0, 1, 1]
        await shared.close()


class TestLimits:
    async def test_of_too_many_terms_the_heaviest_count(self, store: OpenSearchTextStore) -> None:
        await store.upsert([chunk("zeppelin", "z.md"), chunk("balloon", "b.md")])
        many = [QueryTerm(f"term{n}", 0.5) for n in range(2_000)]
        strict = Filter(SCOPE, frozenset({Source.MEMORY}), "z", "2026-01-01", "2026-01-02", include_private=False)
        wanted = [QueryTerm("balloon", 0.1), *many, QueryTerm("zeppelin", 0.9)]
        result = await text_hits(store, wanted, HERE, 10)
        assert await text_hits(store, wanted, strict, 10) == result
        assert [hit.chunk.key.path for hit in result] == ["z.md"]

    async def test_a_chunk_that_is_refused_is_named_and_keeps_no_other_one_out(
        self, store: OpenSearchTextStore
    ) -> None:
        # Lucene takes terms of up to 32,766 bytes.
        bad = replace(chunk("bad"), terms="x", key=replace(chunk("bad").key, path="x" * 40_000))
        with pytest.raises(InvalidInputError, match=bad.id):
            await store.upsert([chunk("word", "a.md"), bad, chunk("word", "b.md")])
        assert sorted(ref.id for ref in await scanned(store)) == ids([chunk("word", "a.md"), chunk("word", "b.md")])

    async def test_a_long_term_is_one_term(self, store: OpenSearchTextStore) -> None:
        await store.upsert([replace(chunk("long"), terms="x" * 128)])
        assert len(await text_hits(store, [QueryTerm("x" * 128)], HERE, 10)) == 1


class TestSettings:
    def test_they_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORYD_OPENSEARCH_URL", "https://search.example:9200")
        monkeypatch.setenv("MEMORYD_OPENSEARCH_PASSWORD", "sesame")
        settings = OpenSearchSettings()
        assert settings.url == "https://search.example:9200"
        assert "sesame" not in repr(settings)

    @pytest.mark.parametrize("url", ["search:9200", "http://user:secret@search:9200", "ftp://search", ""])
    def test_another_url_is_refused(self, url: str) -> None:
        with pytest.raises(ValidationError, match="url"):
            OpenSearchSettings(url=url)
