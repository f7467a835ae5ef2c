"""Another model under a running deployment: a second embedder beside the first one, or another model in its place."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.generations import NatsGenerations
from memoryd.adapters.opensearch.connection import connect as connect_opensearch
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.qdrant.connection import connect as connect_qdrant
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.client import SearchReply
from memoryd.generations.admin import drop, statuses, use
from tests.e2e.conftest import ROD
from tests.e2e.deployment import Deployment
from tests.e2e.distributed import deployed
from tests.servers.cluster import Cluster, Servers
from tests.servers.nats import nats_url
from tests.servers.opensearch import opensearch_url
from tests.servers.process import free_port
from tests.servers.qdrant import qdrant_url
from tests.support.eventually import eventually
from tests.support.tiny_model import prepare_tiny

SMALL, LARGE, LARGER = "tiny-32", "tiny-64", "tiny-96"
NOTES = {"kiln.md": "The kiln is hot.\n", "loom.md": "The loom is old.\n", "ferry.md": "The ferry is late.\n"}
WITHIN = 90.0


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three models whose vectors differ in length."""
    place = tmp_path_factory.mktemp("models")
    return {f"tiny-{hidden}": prepare_tiny(place / str(hidden), hidden) for hidden in (32, 64, 96)}


@asynccontextmanager
async def searching(deployment: Deployment, answers: list[SearchReply]) -> AsyncIterator[None]:
    """Search all the time and keep every answer; one that fails fails the test."""

    async def run() -> None:
        while True:
            # Each time another query: the vectors of queries and the answers are cached.
            answers.append(await deployment.search(f"the kiln {len(answers)}", min_score=0.0))
            await asyncio.sleep(0.02)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        if task.done():
            task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def changes(answers: list[SearchReply]) -> list[str]:
    """The models that answered, each once in a row; answers by words alone are left out."""
    names = [answer.model.name for answer in answers if answer.model]
    return [name for n, name in enumerate(names) if n == 0 or names[n - 1] != name]


async def test_model_change(tmp_path: Path, folder: Path, models: dict[str, Path]) -> None:
    """Case `model-change`: the old generation answers until the new one has caught up, without any restart."""
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    next_address = f"127.0.0.1:{free_port()}"
    namespace = f"memoryd-generations-{secrets.token_hex(4)}"
    more = {
        "MEMORYD_EMBEDDER_MODEL_DIR": str(models[SMALL]),
        "MEMORYD_CLIENT_NEXT_EMBEDDER": next_address,
        "MEMORYD_GENERATIONS_INTERVAL": "0.1",
        "MEMORYD_GENERATIONS_DROP_GRACE": "1",
    }
    cluster = Cluster(tmp_path, namespace, Servers(nats_url(), qdrant_url(), opensearch_url()), more=more)
    connection = await NatsConnection.open([nats_url()])
    large, larger = (cluster.embedder(next_address, models[name]) for name in (LARGE, LARGER))
    answers: list[SearchReply] = []
    try:
        await asyncio.to_thread(cluster.start)
        registry = await NatsGenerations.open(connection, namespace)

        async def current() -> str:
            return "".join(each.generation.model.name for each in await statuses(registry) if each.current)

        async def answering() -> str:
            reply = await deployment.search("the loom", min_score=0.0)
            name = reply.model.name if reply.model else "no model"
            return f"{name}{' degraded' if reply.degraded else ''}"

        async def found(text: str) -> str:
            results = (await deployment.search(text, min_score=0.0, mode="text")).results
            return results[0].path if results else ""

        async with deployed(cluster, tmp_path / "data", {ROD: folder}) as deployment:
            await deployment.until("kiln", lambda results: len(results) == len(NOTES), min_score=0.0)
            assert await answering() == SMALL
            async with searching(deployment, answers):
                await asyncio.to_thread(large.start)
                await eventually(current, LARGE, WITHIN)
                await eventually(answering, LARGE, WITHIN)
                ids = {each.generation.model.name: each.generation.id for each in await statuses(registry)}
                for name in (SMALL, LARGE):
                    await use(registry, ids[name])
                    await eventually(answering, name, WITHIN)
                    (folder / f"{name}.md").write_text(f"Written under {name}.\n")
                    await eventually(lambda: found(f"written {name}"), f"{name}.md", WITHIN)  # noqa: B023  (used at once)

                async def unwanted() -> list[str]:
                    return [each.id for each in (await registry.read()).generations if each.retired]

                await eventually(unwanted, [ids[SMALL]], WITHIN)
                await drop(registry, ids[SMALL])

                async def listed() -> list[str]:
                    return [each.generation.model.name for each in await statuses(registry)]

                await eventually(listed, [LARGE], WITHIN)
                assert [name for name in await kept(namespace, connection) if ids[SMALL] in name] == []

                # Another model in the place of the one that answers: words alone find until its index is there.
                await asyncio.to_thread(large.stop)
                await asyncio.to_thread(larger.start)
                await eventually(current, LARGER, WITHIN)
                await eventually(answering, LARGER, WITHIN)
            # Each time another query: the vectors of queries and the answers are cached.
            answers.append(await deployment.search(f"the kiln {len(answers)}", min_score=0.0))
        assert changes(answers) == [SMALL, LARGE, SMALL, LARGE, LARGER]
        assert all(len(answer.results) >= len(NOTES) for answer in answers if answer.model)
        assert all(answer.results for answer in answers)
        assert any(answer.model is None for answer in answers)
    finally:
        cluster.kill()
        for process in (large, larger):
            process.kill()
        await connection.close()


async def kept(namespace: str, connection: NatsConnection) -> list[str]:
    """Name all that the engines keep for a namespace: collections, indexes, buckets and durable consumers."""
    qdrant: AsyncQdrantClient = connect_qdrant(QdrantSettings(url=qdrant_url()))
    opensearch = connect_opensearch(OpenSearchSettings(url=opensearch_url()))
    try:
        collections = [each.name for each in (await qdrant.get_collections()).collections]
        indexes = list(await opensearch.indices.get(index="*"))
    finally:
        await qdrant.close()
        await opensearch.close()
    streams = [info.config.name or "" for info in await connection.js.streams_info()]
    consumers = [info.name for info in await connection.js.consumers_info(f"KV_{namespace}-files")]
    return [*collections, *indexes, *streams, *consumers]
