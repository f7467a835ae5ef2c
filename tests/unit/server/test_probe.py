import asyncio
import sys

import grpc
import pytest

from memoryd.server.lifecycle import LIVENESS
from memoryd.server.probe import health, main
from tests.support.echo import SERVICE, echo_server, serving


async def test_a_process_is_live_before_it_is_ready() -> None:
    async with echo_server() as server:
        assert await asyncio.to_thread(health, server.address, LIVENESS) == "SERVING"
        assert await asyncio.to_thread(health, server.address) == "NOT_SERVING"
        assert await asyncio.to_thread(health, server.address, SERVICE) == "NOT_SERVING"


async def test_a_server_on_all_addresses_is_asked_on_this_machine() -> None:
    server = echo_server(address="0.0.0.0:0")
    async with serving(server) as channel:
        await channel.channel_ready()
        assert server.address.startswith("0.0.0.0:")
        assert await asyncio.to_thread(health, server.address) == "SERVING"


async def test_a_service_that_is_not_there() -> None:
    async with echo_server() as server:
        assert await asyncio.to_thread(health, server.address, "nothing") == grpc.StatusCode.NOT_FOUND.name
    assert await asyncio.to_thread(health, server.address) == grpc.StatusCode.UNAVAILABLE.name


@pytest.mark.parametrize("arguments", [[], [SERVICE]])
async def test_the_exit_status_tells(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["probe", *arguments])
    server = echo_server()
    async with server:
        monkeypatch.setenv("MEMORYD_GRPC_ADDRESS", server.address)
        with pytest.raises(SystemExit, match=f"^{(arguments or ['server'])[0]}: NOT_SERVING$"):
            await asyncio.to_thread(main)
    server = echo_server()
    async with serving(server) as channel:
        await channel.channel_ready()
        monkeypatch.setenv("MEMORYD_GRPC_ADDRESS", server.address)
        await asyncio.to_thread(main)
