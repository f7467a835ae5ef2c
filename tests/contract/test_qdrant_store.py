"""What the vector store on Qdrant does beyond the port: its server goes and comes, and is shared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from qdrant_client import models

from memoryd.adapters.qdrant.connection import connect
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.adapters.qdrant.store import QdrantVectorStore
from memoryd.errors import STORE_LOST, DataError, UnavailableError
from memoryd.ports import VectorStore
from tests.contract.registry import DIMENSIONS
from tests.contract.vector_chunks import ALL, HERE, SCOPE, embedded, found, ids, scanned, vector
from tests.servers.process import server_folder
from tests.servers.qdrant import QdrantServer
from tests.support.eventually import eventually
from tests.support.hits import vector_hits

CALLS: dict[str, Callable[[VectorStore], Awaitable[Any]]] = {
    "upsert": lambda store: store.upsert([embedded(1)]),
    "delete": lambda store: store.delete(SCOPE, ids([embedded(0)])),
    "nearest": lambda store: store.nearest(vector(0), HERE, 1, []),
    "chunks": lambda store: store.chunks(SCOPE, ids([embedded(0)])),
    "cosines": lambda store: store.cosines(vector(0), SCOPE, ids([embedded(0)])),
    "sketches": lambda store: store.sketches(SCOPE, [embedded(0).chunk.id]),
    "embeddings": lambda store: store.embeddings(SCOPE.tenant, [embedded(0).chunk.text_hash]),
    "scan": scanned,
}


@pytest.fixture(scope="module")
def servers() -> Iterator[QdrantServer]:
    server = QdrantServer(server_folder("qdrant-outages"))
    yield server
    server.process.kill()


@pytest.fixture
def server(servers: QdrantServer) -> QdrantServer:
    """Give a server that runs, whatever the test before did to it."""
    servers.process.start()
    return servers


@pytest.fixture
async def store(server: QdrantServer, tmp_path: Path) -> AsyncIterator[QdrantVectorStore]:
    store = await QdrantVectorStore.open(QdrantSettings(url=server.url), tmp_path.name, DIMENSIONS)
    yield store
    await store.close()


class TestOutage:
    async def test_calls_fail_meanwhile_and_then_everything_is_there_again(
        self, server: QdrantServer, store: QdrantVectorStore
    ) -> None:
        await store.upsert([embedded(0)])
        server.process.kill()
        for call in CALLS.values():
            with pytest.raises(UnavailableError, match=f"^Qdrant at {server.url} can't be reached: see that it runs"):
                await call(store)
        server.process.start()

        async def visible() -> list[str]:
            try:
                return [chunk.id for chunk in await found(store)]
            except UnavailableError:
                return []

        await eventually(visible, ids([embedded(0)]))
        for call in CALLS.values():
            await call(store)

    async def test_a_server_that_hangs_is_waited_for_no_longer_than_the_timeout(
        self, server: QdrantServer, store: QdrantVectorStore, tmp_path: Path
    ) -> None:
        hasty = await QdrantVectorStore.open(QdrantSettings(url=server.url, timeout=1), tmp_path.name, DIMENSIONS)
        server.process.pause()
        with pytest.raises(UnavailableError, match="did not answer within 1 s"):
            await vector_hits(hasty, vector(0), HERE, ALL)
        server.process.resume()
        await hasty.close()
        assert await found(store) == []

    async def test_a_store_does_not_open_without_its_server(self, server: QdrantServer) -> None:
        server.process.kill()
        with pytest.raises(UnavailableError, match="can't be reached"):
            await QdrantVectorStore.open(QdrantSettings(url=server.url), "any", DIMENSIONS)

    async def test_a_lost_collection_is_named(self, server: QdrantServer, store: QdrantVectorStore) -> None:
        client = connect(QdrantSettings(url=server.url))
        for collection in (await client.get_collections()).collections:
            await client.delete_collection(collection.name)
        await client.close()
        for call in CALLS.values():
            with pytest.raises(UnavailableError, match="has lost the collection") as failure:
                await call(store)
            assert failure.value.reason == STORE_LOST
        await store.ensure()
        await store.upsert([embedded(1)])
        assert [chunk.id for chunk in await found(store)] == ids([embedded(1)])

    async def test_a_closed_store_says_so(self, store: QdrantVectorStore) -> None:
        await store.close()
        with pytest.raises(UnavailableError, match="is closed"):
            await vector_hits(store, vector(0), HERE, ALL)


class TestCollection:
    async def test_several_processes_make_it_at_once(self, server: QdrantServer) -> None:
        settings = QdrantSettings(url=server.url)
        stores = await asyncio.gather(*(QdrantVectorStore.open(settings, "shared", DIMENSIONS) for _ in range(8)))
        await asyncio.gather(*(store.upsert([embedded(n)]) for n, store in enumerate(stores)))
        for store in stores:
            assert len(await found(store)) == len(stores)
            await store.close()

    async def test_of_vectors_of_another_length_is_refused(self, server: QdrantServer) -> None:
        settings = QdrantSettings(url=server.url)
        await (await QdrantVectorStore.open(settings, "narrow", DIMENSIONS)).close()
        with pytest.raises(DataError, match=f"vectors of {DIMENSIONS} numbers, the model gives {DIMENSIONS + 1}"):
            await QdrantVectorStore.open(settings, "narrow", DIMENSIONS + 1)

    async def test_it_is_quantised_and_replicated_as_the_settings_say(self, server: QdrantServer) -> None:
        settings = QdrantSettings(url=server.url, quantize=True, replication=3)
        store = await QdrantVectorStore.open(settings, "quantised", DIMENSIONS)
        await store.upsert([embedded(n) for n in range(20)])
        assert (await found(store, seed=7, limit=1))[0].text == "text 7"
        await store.close()
        client = connect(settings)
        config = (await client.get_collection("quantised")).config
        await client.close()
        assert isinstance(config.quantization_config, models.ScalarQuantization)
        assert config.quantization_config.scalar.type == models.ScalarType.INT8
        assert (config.params.replication_factor, config.params.write_consistency_factor) == (3, 2)
        assert (config.hnsw_config.m, config.hnsw_config.payload_m) == (0, 16)


class TestSettings:
    async def test_the_api_key_is_sent(self, tmp_path: Path) -> None:
        server = QdrantServer(tmp_path, "--api-key", "sesame")
        server.process.start()
        try:
            settings = QdrantSettings(url=server.url, api_key=SecretStr("sesame"))
            await (await QdrantVectorStore.open(settings, "locked", DIMENSIONS)).close()
            with pytest.raises(UnavailableError, match="refuses our API key: set MEMORYD_QDRANT_API_KEY"):
                await QdrantVectorStore.open(QdrantSettings(url=server.url), "locked", DIMENSIONS)
        finally:
            server.process.kill()

    def test_they_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORYD_QDRANT_URL", "https://[::1]:6334")
        monkeypatch.setenv("MEMORYD_QDRANT_API_KEY", "sesame")
        settings = QdrantSettings()
        assert (settings.tls, settings.host, settings.port) == (True, "[::1]", 6334)
        assert "sesame" not in repr(settings)

    @pytest.mark.parametrize("url", ["qdrant:6334", "http://qdrant", "http://qdrant:6334/path", "ftp://qdrant:1", ""])
    def test_another_url_is_refused(self, url: str) -> None:
        with pytest.raises(ValidationError, match="url"):
            QdrantSettings(url=url)
