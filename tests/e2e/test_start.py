"""A process that starts before what it depends on: it waits and says for what, and is no crash loop."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memoryd.client import MemorydClient
from memoryd.errors import UnavailableError
from memoryd.server.lifecycle import LIVENESS
from memoryd.server.probe import health
from memoryd.server.settings import ServerSettings
from tests.servers.cluster import Cluster, Servers
from tests.servers.nats import NatsServer
from tests.servers.process import free_port, server_folder
from tests.support.eventually import eventually


@pytest.fixture
def nats() -> Iterator[NatsServer]:
    """A server that does not run yet."""
    server = NatsServer(server_folder("nats"))
    yield server
    server.process.kill()


async def test_a_gateway_waits_and_says_for_what(nats: NatsServer, tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    cluster = Cluster(tmp_path, f"memoryd-start-{secrets.token_hex(4)}", Servers(nats.url, nobody, nobody))
    (gateway,), (address,) = cluster.processes["gateway"], cluster.addresses["gateway"]
    settings = ServerSettings(address=address)
    await asyncio.to_thread(gateway.start, lambda: health(settings, LIVENESS) == "SERVING")
    try:
        assert await asyncio.to_thread(partial(health, settings)) == "NOT_SERVING"
        async with MemorydClient(address, "mk_a_b") as client:

            async def waits_for() -> str:
                with pytest.raises(UnavailableError, match="MemoryService is starting and waits for") as early:
                    await client.search("ferry")
                assert early.value.reason == "STARTING"
                return re.sub(r".* waits for (.*): try again later", r"\1", str(early.value))

            where = nats.url.removeprefix("nats://")
            assert await waits_for() == f"NATS at {where}"
            await asyncio.to_thread(nats.process.start)
            await eventually(waits_for, f"the search service at {cluster.target('search')}")
    finally:
        status = await asyncio.to_thread(gateway.stop)
    assert status == 0
    log = cluster.logs("gateway")[0].read_text()
    assert f'"waits_for": "NATS at {where}"' in log
    assert "Traceback" not in log


@pytest.mark.parametrize("service", ["indexer", "search"])
async def test_an_inner_service_waits_for_one_thing_after_the_other(
    nats: NatsServer, tmp_path: Path, service: str
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    cluster = Cluster(tmp_path, f"memoryd-start-{secrets.token_hex(4)}", Servers(nats.url, nobody, nobody))
    (process,), (address,) = cluster.processes[service], cluster.addresses[service]
    settings = ServerSettings(address=address)
    await asyncio.to_thread(process.start, lambda: health(settings, LIVENESS) == "SERVING")
    (log,) = cluster.logs(service)

    async def waits_for() -> list[str]:
        return list(dict.fromkeys(re.findall(r'"waits_for": "(.*?)"', log.read_text())))

    try:
        first = f"NATS at {nats.url.removeprefix('nats://')}"
        await eventually(waits_for, [first])
        assert await asyncio.to_thread(partial(health, settings)) == "NOT_SERVING"
        await asyncio.to_thread(nats.process.start)
        await eventually(waits_for, [first, f"the embedder service at {cluster.target('embedder')}"])
        assert await asyncio.to_thread(partial(health, settings)) == "NOT_SERVING"
    finally:
        status = await asyncio.to_thread(process.stop)
    assert status == 0
    assert "Traceback" not in log.read_text()


async def test_a_setting_that_is_wrong_ends_the_process_and_is_named(tmp_path: Path) -> None:
    servers = Servers("http://localhost:4222", "http://localhost:6334", "http://localhost:9200")
    cluster = Cluster(tmp_path, "memoryd", servers)
    with pytest.raises(RuntimeError, match=r"memoryd: the environment can't be used: MEMORYD_NATS_URL: String should"):
        await asyncio.to_thread(cluster.processes["gateway"][0].start)
