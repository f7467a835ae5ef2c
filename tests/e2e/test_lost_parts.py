"""A part of a deployment loses what it held: everything is there again without a person and without the folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.opensearch.connection import connect as connect_opensearch
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.qdrant.connection import connect as connect_qdrant
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.errors import UnavailableError
from tests.e2e.conftest import ROD
from tests.e2e.deployment import Deployment
from tests.e2e.distributed import Tenants, deployed
from tests.e2e.processes import Ended, command
from tests.servers.cluster import Cluster, Servers, running_cluster
from tests.servers.nats import NatsServer
from tests.servers.opensearch import opensearch_url
from tests.servers.process import server_folder
from tests.servers.qdrant import QdrantServer
from tests.support.eventually import eventually

WITHIN = 30.0


class World:
    """A cluster on a NATS and a Qdrant of its own, whose indexer looks often, and holds nothing for long."""

    def __init__(self) -> None:
        self.nats = NatsServer(server_folder("nats"))
        self.qdrant = QdrantServer(server_folder("qdrant"))
        self.servers = Servers(self.nats.url, self.qdrant.url, opensearch_url())
        more = {"MEMORYD_INDEXER_GLANCE_INTERVAL": "0.5", "MEMORYD_INDEXER_LEASE": "2"}
        name = f"memoryd-lost-{secrets.token_hex(4)}"
        self.cluster = Cluster(server_folder("services"), name, self.servers, more=more)

    async def lose_texts(self) -> None:
        client = connect_opensearch(OpenSearchSettings(url=self.servers.opensearch))
        found = await client.cat.indices(index=f"{self.cluster.namespace}*", format="json")
        for each in found:
            await client.indices.delete(index=each["index"])
        await client.close()

    async def lose_vectors(self) -> None:
        client = connect_qdrant(QdrantSettings(url=self.servers.qdrant))
        for each in (await client.get_collections()).collections:
            await client.delete_collection(each.name)
        await client.close()

    async def lose_manifest(self) -> None:
        await self._lose_bucket("-manifest-")

    async def lose_log(self) -> None:
        await self._lose_bucket("-files")

    async def _lose_bucket(self, part: str) -> None:
        connection = await NatsConnection.open([self.servers.nats])
        for stream in await connection.js.streams_info():
            if part in (stream.config.name or ""):
                await connection.js.delete_stream(stream.config.name or "")
        await connection.close()

    async def operator(self, *arguments: str) -> Ended:
        """Run a command as the deployment's operator."""
        variables = self.cluster.environment()
        return await command(Path("none"), *arguments, **{k: v for k, v in variables.items() if "MEMORYD" in k})


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World()
    with running_cluster(world.cluster, world.nats.process, world.qdrant.process):
        yield world


@pytest.fixture
async def running(world: World, tmp_path: Path, folder: Path) -> AsyncIterator[Deployment]:
    (folder / "ferry.md").write_text("The ferry Halcyon leaves at noon.\n")
    async with deployed(world.cluster, tmp_path / "data", {ROD: folder}) as deployment:
        await deployment.settled()
        yield deployment


async def everywhere(running: Deployment, path: str) -> None:
    """Wait until both legs find a file."""

    async def found() -> list[list[str]]:
        try:
            return [await running.found("the ferry Halcyon", mode=mode) for mode in ("text", "vector")]
        except UnavailableError:
            return []

    await eventually(found, [[path], [path]], WITHIN)


LOST: dict[str, Callable[[World], Awaitable[None]]] = {
    "texts": World.lose_texts,
    "vectors": World.lose_vectors,
    "manifest": World.lose_manifest,
    "log": World.lose_log,
}


@pytest.mark.parametrize("part", list(LOST))
async def test_what_is_lost_comes_back(world: World, running: Deployment, part: str) -> None:
    await everywhere(running, "ferry.md")
    await LOST[part](world)
    await everywhere(running, "ferry.md")


async def test_an_operator_checks_and_purges(world: World, running: Deployment, folder: Path) -> None:
    (folder / "ferry.md").unlink()
    (folder / "bus.md").write_text("The bus Calypso leaves at one.\n")
    await running.synced()
    await running.settled()
    assert isinstance(running.keys, Tenants)
    tenant = running.keys.scope(ROD).tenant
    receipt = await world.operator("purge", "ferry.md", "-w", ROD.workspace, "--tenant", tenant, "--json")
    assert receipt.code == 0, receipt.err
    assert json.loads(receipt.out)["verified"] is True
    assert await running.found("the ferry Halcyon", min_score=0.0) in ([], ["bus.md"])
    checked = await world.operator("doctor", "--tenant", tenant, "-w", ROD.workspace, "--json")
    assert checked.code == 0, checked.err
    (workspace,) = json.loads(checked.out)["workspaces"]
    assert (workspace["clean"], workspace["files"]) == (True, 1)
    served = await world.operator("purge", "-w", ROD.workspace, "--tenant", tenant, "--yes")
    assert (served.code, "still served" in served.err) == (1, True)
