"""Each dependency of a search goes, is five seconds late, or answers garbage, in the middle of a load."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memoryd.client import MemorydClient, SearchReply
from memoryd.errors import DeadlineExceededError, UnavailableError
from tests.e2e.conftest import ROD
from tests.e2e.deployment import WITHIN, Deployment
from tests.e2e.distributed import deployed
from tests.servers.cluster import Cluster, Servers
from tests.servers.nats import nats_url
from tests.servers.opensearch import opensearch_url
from tests.servers.process import server_folder
from tests.servers.proxy import Proxy, Way
from tests.servers.qdrant import qdrant_url

_EVERY = 0.1  # seconds: 10 searches a second
_DEADLINE = 4.0  # less than what is slow takes
_CALLS = 20
_IN_FLIGHT = 3  # calls, at most, that have no answer yet when the next begins


class World:
    """A cluster whose ways to its dependencies can be blocked."""

    def __init__(self) -> None:
        servers = Servers(nats_url(), qdrant_url(), opensearch_url())
        urls = {"nats": servers.nats, "qdrant": servers.qdrant, "opensearch": servers.opensearch}
        self.ways = {name: Proxy(urlsplit(url).port or 0) for name, url in urls.items()} | {"embedder": Proxy(0)}
        more = {
            f"MEMORYD_{name.upper()}_URL": f"{urlsplit(url).scheme}://127.0.0.1:{self.ways[name].port}"
            for name, url in urls.items()
        }
        more["MEMORYD_CLIENT_EMBEDDER"] = f"127.0.0.1:{self.ways['embedder'].port}"
        name = f"memoryd-faults-{secrets.token_hex(4)}"
        self.cluster = Cluster(server_folder("services"), name, servers, more=more)
        self.ways["embedder"].target = int(self.cluster.addresses["embedder"][0].rpartition(":")[2])


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World()
    with ExitStack() as stack:
        for way in world.ways.values():
            way.start()
            stack.callback(way.stop)
        stack.callback(world.cluster.kill)
        world.cluster.start()
        yield world


@pytest.fixture
async def running(world: World, tmp_path: Path, folder: Path) -> AsyncIterator[Deployment]:
    """A folder with one note that is indexed."""
    (folder / "ferry.md").write_text("The ferry Halcyon leaves at noon.\n")
    async with deployed(world.cluster, tmp_path / "data", {ROD: folder}) as deployment:
        await deployment.settled()
        yield deployment


async def load(
    client: MemorydClient, numbers: Iterator[int], chat: str = "direct", halfway: Callable[[], None] = lambda: None
) -> list[SearchReply]:
    """Search ten times a second, each time for something else; every call answers, or this raises.

    `halfway` is called between two searches; a call that waits for its answer meanwhile has one either way.
    """
    calls = []
    for number in range(_CALLS):
        if number == _CALLS // 2:
            halfway()
        calls.append(asyncio.create_task(client.search(f"ferry Halcyon {next(numbers)}", chat=chat)))
        await asyncio.sleep(_EVERY)
    return await asyncio.gather(*calls)


async def whole(client: MemorydClient, numbers: Iterator[int]) -> None:
    """Search until an answer is complete again."""
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                reply = await client.search(f"ferry Halcyon {next(numbers)}")
            except (UnavailableError, DeadlineExceededError):
                continue
            if not (reply.degraded or reply.stale):
                return
            await asyncio.sleep(_EVERY)


@pytest.mark.parametrize("way", [Way.CLOSED, Way.SLOW, Way.GARBAGE], ids=lambda way: way.name.lower())
@pytest.mark.parametrize(
    ("name", "stage"), [("embedder", "embed"), ("qdrant", "vector"), ("opensearch", "text"), ("nats", "fuse")]
)
async def test_every_search_answers_in_time_and_says_what_is_missing(
    world: World, running: Deployment, name: str, stage: str, way: Way
) -> None:
    numbers = itertools.count()
    key = await running.keys.create(ROD.tenant, frozenset({ROD.workspace}))
    async with MemorydClient(running.address, key, timeout=_DEADLINE) as client:
        await whole(client, numbers)
        way_there = world.ways[name]
        try:
            replies = await load(client, numbers, halfway=lambda: way_there.become(way))
            before, replies = replies[: _CALLS // 2 - _IN_FLIGHT], replies[_CALLS // 2 :]
            shown = await load(client, numbers, chat="group") if name == "nats" else []
        finally:
            way_there.become(Way.CLEAR)
        assert not any(reply.degraded or reply.stale for reply in before)
        for reply in replies:
            assert [result.path for result in reply.results] == ["ferry.md"]
            assert {entry.stage for entry in reply.degraded} == {stage}, reply.degraded
            assert reply.fallback
            assert reply.stale is (name == "nats")
        assert not any(reply.results for reply in shown)
        if way is Way.SLOW:  # the first ones wait for it, the later ones no more
            assert {entry.reason for entry in replies[0].degraded} == {"DEADLINE_EXCEEDED"}
        await whole(client, numbers)
