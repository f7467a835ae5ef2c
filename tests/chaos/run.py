"""One run: servers, six processes, a stream of edits, searches, kills, and the count at the end."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from memoryd.adapters.distributed import EngineSettings, open_engines
from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.errors import MemorydError
from memoryd.generations.parts import Parts
from memoryd.server.lifecycle import Server
from memoryd.server.probe import health
from memoryd.server.settings import ServerSettings
from tests.chaos.check import Counts, compare, torn
from tests.chaos.stream import COMMON, Stream
from tests.e2e.distributed import deployed
from tests.servers.cluster import Cluster, Servers
from tests.servers.nats import NatsServer
from tests.servers.opensearch import opensearch
from tests.servers.process import ServerProcess, server_folder
from tests.servers.qdrant import QdrantServer

_SCOPE = Scope("chaos", "notes")
_CHUNK_TOKENS = 48
_SETTINGS = {
    "MEMORYD_INDEXER_CHUNK_TOKENS": str(_CHUNK_TOKENS),
    "MEMORYD_INDEXER_LEASE": "3",
    "MEMORYD_INDEXER_GRACE": "1",
    "MEMORYD_INDEXER_SWEEP_INTERVAL": "3",
}
_LONGEST_LIFE = 1.0  # seconds from SERVING to the next kill
_EARLY = 0.2  # share of kills that do not wait for SERVING
_EDIT_EVERY = 0.08  # seconds, on average
_SEARCH_EVERY = 0.25
_STARTED_WITHIN = 240.0
_SETTLED_WITHIN = 120.0
_MOST_TOLD = 20  # torn results

Tell = Callable[[str], None]


@dataclass
class Outcome:
    """What happened."""

    kills: int = 0
    restarts: int = 0
    changes: int = 0
    searches: int = 0
    torn: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was wrong, and something was tried."""
        return not self.counts.total and not self.torn and self.searches > 0 and self.changes > 0

    def __str__(self) -> str:
        """Tell all in a line."""
        return (
            f"chaos: {self.kills} kills and {self.restarts} restarts of servers under {self.changes} changes and "
            f"{self.searches} searches: {self.counts}, {self.torn} torn results"
        )


async def chaos(kills: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Run it in an empty folder; `seed` chooses the changes and the times of the kills."""
    outcome, stream = Outcome(), Stream(folder, seed)
    async with _deployment(folder) as (cluster, servers, client):
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(_edit(stream, seed)), group.create_task(_search(client, stream, outcome, tell))]
            rng = random.Random(seed)  # noqa: S311  (repeatable, no secret)
            await _kill(cluster, servers, kills, rng, outcome, tell)
            for task in others:
                task.cancel()
        outcome.changes = stream.changes
        tell("waiting until all is indexed and swept")
        async with _engines(cluster) as engines:
            outcome.counts = await _rest(engines, client, folder, stream)
    return outcome


async def _kill(
    cluster: Cluster,
    servers: list[ServerProcess],
    kills: int,
    rng: random.Random,
    outcome: Outcome,
    tell: Tell,
) -> None:
    """Kill the indexer; in the middle, one after the other, the servers, too."""
    indexer = cluster.processes["indexer"][0]
    restarts = {kills * (number + 1) // (len(servers) + 1): server for number, server in enumerate(servers)}
    for number in range(kills):
        if (server := restarts.get(number)) is not None:
            server.kill()
            await asyncio.to_thread(server.start)
            outcome.restarts += 1
        if rng.random() < _EARLY:
            await asyncio.to_thread(indexer.start, lambda: True)
            await asyncio.sleep(rng.uniform(0, 3 * _LONGEST_LIFE))
        else:
            await _start(cluster)
            await asyncio.sleep(rng.uniform(0, _LONGEST_LIFE))
        if (status := indexer.ended) is not None:
            raise RuntimeError(f"the indexer ended by itself, with exit status {status}: see {cluster.logs('indexer')}")
        indexer.kill()
        outcome.kills += 1
        if outcome.kills % 10 == 0:
            tell(f"{outcome.kills} of {kills} kills")
    await _start(cluster)


async def _start(cluster: Cluster) -> None:
    """Start the indexer and wait until it serves: on a busy machine longer than other tests do."""
    indexer, address = cluster.processes["indexer"][0], cluster.addresses["indexer"][0]
    await asyncio.to_thread(indexer.start, lambda: True)
    async with asyncio.timeout(_STARTED_WITHIN):
        while await asyncio.to_thread(health, ServerSettings(address=address)) != "SERVING" and indexer.ended is None:
            await asyncio.sleep(0.05)


async def _edit(stream: Stream, seed: int) -> None:
    rng = random.Random(seed + 1)  # noqa: S311  (as above)
    while True:
        stream.change()
        await asyncio.sleep(rng.expovariate(1 / _EDIT_EVERY))


async def _search(client: MemorydClient, stream: Stream, outcome: Outcome, tell: Tell) -> None:
    while True:
        with suppress(MemorydError):  # a server is away
            reply = await client.search(COMMON, min_score=0.0, max_results=50)
            outcome.searches += 1
            wrong = torn(reply, stream.versions)
            for each in wrong[: max(_MOST_TOLD - outcome.torn, 0)]:
                tell(f"torn, revision {reply.revision}, stale {reply.stale}: {each}")
            outcome.torn += len(wrong)
        await asyncio.sleep(_SEARCH_EVERY)


async def _rest(engines: Parts, client: MemorydClient, folder: Path, stream: Stream) -> Counts:
    """Wait until nothing differs, or for so long that something never will."""
    end = time.monotonic() + _SETTLED_WITHIN
    scope = next(scope for scope in await engines.manifest.scopes() if scope.tenant.startswith(_SCOPE.tenant))
    counts, pending = Counts(lost=1), 0
    while time.monotonic() < end:
        with suppress(MemorydError):
            (status,) = (await client.status()).workspaces
            counts, pending = await compare(engines, scope, folder, _CHUNK_TOKENS), status.pending
            if not pending and not counts.total:
                assert not torn(await client.search(COMMON, min_score=0.0, max_results=50), stream.versions)
                return counts
        await asyncio.sleep(1.0)
    if not counts.total:
        raise TimeoutError(f"{pending} changes are still pending {_SETTLED_WITHIN:g} s after the last one")
    return counts


@asynccontextmanager
async def _deployment(folder: Path) -> AsyncIterator[tuple[Cluster, list[ServerProcess], MemorydClient]]:
    nats, qdrant = NatsServer(server_folder("nats")), QdrantServer(server_folder("qdrant"))
    text = await asyncio.to_thread(opensearch)
    where = Servers(nats.url, qdrant.url, text.url)
    cluster = Cluster(server_folder("services"), f"memoryd-chaos-{secrets.token_hex(4)}", where, more=_SETTINGS)
    try:
        for server in (nats, qdrant):
            await asyncio.to_thread(server.process.start)
        await asyncio.to_thread(cluster.start)
        async with deployed(cluster, folder, {_SCOPE: folder}) as deployment:
            yield cluster, [nats.process, text.process], deployment.client
    finally:
        cluster.kill()
        for server in (nats, qdrant):
            server.process.kill()


@asynccontextmanager
async def _engines(cluster: Cluster) -> AsyncIterator[Parts]:
    """Open the engines as a process of the deployment does."""
    with mock.patch.dict("os.environ", cluster.environment(), clear=True):
        settings = EngineSettings()
    async with Server(settings.grpc) as server, AsyncExitStack() as stack:
        engines = await open_engines(settings, "chaos", server, stack, consumer="indexer")
        yield await engines.open_current(stack)
