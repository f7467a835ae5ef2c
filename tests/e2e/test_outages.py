"""Two of each service; what a caller sees while a part is away, and that all is well again when it is back."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from memoryd.client import MemorydClient, SearchReply
from memoryd.errors import UnavailableError
from tests.e2e.conftest import ROD
from tests.e2e.deployment import WITHIN, Deployment
from tests.e2e.distributed import deployed
from tests.servers.cluster import SERVICES, Cluster, Servers, running_cluster
from tests.servers.nats import NatsServer
from tests.servers.opensearch import opensearch
from tests.servers.process import ServerProcess, server_folder
from tests.servers.qdrant import QdrantServer

T = TypeVar("T")

_ROUNDS = 8  # searches, one after the other, that reach each replica behind each gateway
_EVERY = 0.05  # seconds: 20 searches a second


class World:
    """A cluster of two replicas a service, on servers that can be stopped."""

    def __init__(self) -> None:
        self.nats = NatsServer(server_folder("nats"))
        self.qdrant = QdrantServer(server_folder("qdrant"))
        self.opensearch = opensearch()
        servers = Servers(self.nats.url, self.qdrant.url, self.opensearch.url)
        # A short lease: what a killed indexer has held is taken up by the other one soon.
        more = {"MEMORYD_INDEXER_LEASE": "3"}
        self.cluster = Cluster(
            server_folder("services"), f"memoryd-outages-{secrets.token_hex(4)}", servers, replicas=2, more=more
        )

    def processes(self, name: str) -> list[ServerProcess]:
        """All processes of a part."""
        servers = {
            "nats": self.nats.process,
            "qdrant": self.qdrant.process,
            "opensearch": self.opensearch.process,
        }
        return [servers[name]] if name in servers else self.cluster.processes[name]

    @asynccontextmanager
    async def without(self, *names: str) -> AsyncIterator[None]:
        """Stop parts until the block ends."""
        processes = [process for name in names for process in self.processes(name)]
        await asyncio.gather(*(asyncio.to_thread(process.stop) for process in processes))
        try:
            yield
        finally:
            await asyncio.gather(*(asyncio.to_thread(process.start) for process in processes))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World()
    with running_cluster(world.cluster, world.nats.process, world.qdrant.process):
        yield world


@pytest.fixture
async def running(world: World, tmp_path: Path, folder: Path) -> AsyncIterator[Deployment]:
    """A folder with one note that is indexed."""
    (folder / "ferry.md").write_text("The ferry Halcyon leaves at noon.\n")
    async with deployed(world.cluster, tmp_path / "data", {ROD: folder}) as deployment:
        await soon(deployment.settled)
        yield deployment


async def soon(call: Callable[[], Awaitable[T]]) -> T:
    """Try until it is available."""
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                return await call()
            except UnavailableError:
                await asyncio.sleep(0.05)


async def whole(running: Deployment, query: str, path: str) -> SearchReply:
    """Search until the answer is complete again and finds the file first."""

    async def search() -> SearchReply:
        reply = await running.search(query)
        if reply.degraded or reply.stale or [result.path for result in reply.results][:1] != [path]:
            raise UnavailableError(f"not yet: {reply}")
        return reply

    return await soon(search)


def stages(reply: SearchReply) -> list[tuple[str, str]]:
    return [(entry.stage, entry.reason) for entry in reply.degraded]


@pytest.mark.parametrize(
    ("away", "failed", "mode", "part"),
    [
        ("opensearch", ["text"], "vector", "text store"),
        ("qdrant", ["vector"], "text", "vector store"),
        ("embedder", ["embed"], "text", "embedder"),
    ],
)
async def test_without_one_leg_a_search_answers_and_says_so(
    world: World, running: Deployment, folder: Path, away: str, failed: list[str], mode: str, part: str
) -> None:
    async with world.without(away):
        reply = await running.search("ferry Halcyon noon")
        assert [result.path for result in reply.results] == ["ferry.md"]
        assert (stages(reply), reply.mode, reply.fallback) == ([(stage, "UNAVAILABLE") for stage in failed], mode, True)
        assert not reply.stale
        assert [each.part for each in await running.client.probe() if each.reason] == [part]
        # What is written meanwhile can be read at once and is not lost; that it is missing in searches is said.
        (folder / "bus.md").write_text("The bus Calypso leaves at one.\n")
        await running.synced()
        assert (await running.client.get("bus.md")).text == "The bus Calypso leaves at one.\n"
        reply = await running.search("bus Calypso")
        assert (reply.stale, reply.pending) == (True, 1)
        assert "bus.md" not in [result.path for result in reply.results]
    reply = await whole(running, "bus Calypso", "bus.md")
    assert reply.mode == "hybrid"


async def test_without_both_legs_a_search_fails_and_says_why(world: World, running: Deployment) -> None:
    async with world.without("opensearch", "qdrant"):
        with pytest.raises(UnavailableError, match="no search leg answered") as failure:
            await running.search("ferry Halcyon")
        for stage in ("text", "vector"):
            assert f"what the {stage} stage needs is unavailable" in str(failure.value)
        for address in (world.qdrant.url, world.opensearch.url):  # where things are is the operator's business
            assert address not in str(failure.value)
        assert (await running.client.get("ferry.md")).status == "ok"
    await whole(running, "ferry Halcyon", "ferry.md")


async def test_without_indexers_searches_are_stale(world: World, running: Deployment, folder: Path) -> None:
    async with world.without("indexer"):
        (folder / "ferry.md").write_text("The ferry Halcyon leaves at midnight.\n")
        await running.synced()
        reply = await running.search("ferry Halcyon")
        assert (reply.stale, reply.pending, reply.degraded) == (True, 1, ())
        assert "noon" in reply.results[0].snippet
        assert "midnight" in (await running.client.get("ferry.md")).text
        with pytest.raises(UnavailableError, match="indexer"):
            await running.client.status()
    reply = await whole(running, "ferry Halcyon midnight", "ferry.md")
    assert "midnight" in reply.results[0].snippet
    (status,) = (await running.client.status()).workspaces
    assert (status.files, status.chunks, status.pending) == (1, 1, 0)


async def test_without_searches_files_can_be_read(world: World, running: Deployment) -> None:
    async with world.without("search"):
        with pytest.raises(UnavailableError, match="search service"):
            await running.search("ferry Halcyon")
        assert (await running.client.get("ferry.md")).status == "ok"
        assert (await running.client.status()).workspaces[0].files == 1
    await whole(running, "ferry Halcyon", "ferry.md")


async def test_without_nats_searches_answer_from_what_was_known_and_nothing_is_lost(
    world: World, running: Deployment, folder: Path
) -> None:
    for _ in range(4):  # each replica
        assert (await running.search("ferry Halcyon")).results
    async with world.without("nats"):
        reply = await running.search("ferry Halcyon noon")
        assert ([result.path for result in reply.results], reply.stale) == (["ferry.md"], True)
        assert [stage for stage, _ in stages(reply)] == ["fuse"]
        assert (await running.search("ferry Halcyon noon", chat="group")).results == ()
        for call in (running.client.get("ferry.md"), running.client.status()):
            with pytest.raises(UnavailableError, match="NATS at"):
                await call
        (folder / "bus.md").write_text("The bus Calypso leaves at one.\n")
    await whole(running, "bus Calypso", "bus.md")
    await whole(running, "ferry Halcyon", "ferry.md")


async def test_without_the_agents_machine_its_memory_answers(world: World, tmp_path: Path, folder: Path) -> None:
    (folder / "ferry.md").write_text("The ferry Halcyon leaves at noon.\n")
    async with deployed(world.cluster, tmp_path / "data", {ROD: folder}) as running:
        await running.settled()
        key = await running.keys.create(ROD.tenant, frozenset({ROD.workspace}))
        address = running.address
    async with MemorydClient(address, key) as client:
        reply = await client.search("ferry Halcyon")
        assert [result.path for result in reply.results] == ["ferry.md"]
        assert (reply.degraded, reply.stale) == ((), False)
        assert (await client.get("ferry.md")).text == "The ferry Halcyon leaves at noon.\n"
        (status,) = (await client.status()).workspaces
        assert (status.available, "can't be reached" in status.problem, status.files) == (False, True, 1)


async def test_a_killed_indexer_leaves_its_work_to_the_other(world: World, running: Deployment, folder: Path) -> None:
    for n in range(60):
        (folder / f"note-{n:02}.md").write_text(f"On day {n} the ferry Halcyon-{n} left with {n} crates of apples.\n")
    await running.synced()
    one = world.processes("indexer")[0]
    one.kill()
    await soon(running.settled)
    await asyncio.to_thread(one.start)
    (status,) = (await running.client.status()).workspaces
    assert (status.files, status.chunks, status.quarantined) == (61, 61, ())
    found = await running.found("crates of apples", mode="vector", min_score=0.0, max_results=50)
    assert len(found) == len(set(found)) == 50


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_no_search_fails_when_one_replica_of_two_goes(
    world: World, running: Deployment, name: str, how: str
) -> None:
    replica = world.processes(name)[0]
    for n in range(_ROUNDS):  # a replica that has not been asked since another test's outage may still be wary
        await whole(running, f"ferry before {n}", "ferry.md")
    ended = []
    steps: Sequence[Callable[[], object]] = (lambda: ended.append(getattr(replica, how)()), replica.start)
    calls: list[asyncio.Task[SearchReply]] = []
    for step in steps:
        doing = asyncio.create_task(asyncio.to_thread(step))
        for n in itertools.count():
            calls.append(asyncio.create_task(running.search(f"ferry {n}", min_score=0.0)))
            await asyncio.sleep(_EVERY)
            if doing.done() and n >= 1 / _EVERY:
                break
        await doing
    replies = await asyncio.gather(*calls)
    assert all([result.path for result in reply.results] == ["ferry.md"] for reply in replies)
    assert [reply.degraded for reply in replies if reply.degraded] == []
    assert ended == [0 if how == "stop" else None]


async def test_each_replica_answers(world: World, running: Deployment) -> None:
    key = await running.keys.create(ROD.tenant, frozenset({ROD.workspace}))
    for address in world.cluster.addresses["gateway"]:
        async with MemorydClient(address, key) as client:
            for _ in range(4):
                assert (await client.search("ferry Halcyon")).results
    for log in world.cluster.logs("search"):
        assert "/memoryd.v1.SearchService/Search" in log.read_text()
