import asyncio
import sys
from pathlib import Path

import grpc
import pytest
import trustme

from memoryd.server.lifecycle import LIVENESS
from memoryd.server.probe import health, main
from memoryd.server.settings import ServerSettings
from tests.support.echo import SERVICE, echo_server, serving


async def test_a_process_is_live_before_it_is_ready() -> None:
    async with echo_server() as server:
        assert await asyncio.to_thread(health, ServerSettings(address=server.address), LIVENESS) == "SERVING"
        assert await asyncio.to_thread(health, ServerSettings(address=server.address)) == "NOT_SERVING"
        assert await asyncio.to_thread(health, ServerSettings(address=server.address), SERVICE) == "NOT_SERVING"


async def test_a_server_on_all_addresses_is_asked_on_this_machine() -> None:
    server = echo_server(address="0.0.0.0:0")
    async with serving(server) as channel:
        await channel.channel_ready()
        assert server.address.startswith("0.0.0.0:")
        assert await asyncio.to_thread(health, ServerSettings(address=server.address)) == "SERVING"


async def test_a_service_that_is_not_there() -> None:
    async with echo_server() as server:
        assert (
            await asyncio.to_thread(health, ServerSettings(address=server.address), "nothing")
            == grpc.StatusCode.NOT_FOUND.name
        )
    assert await asyncio.to_thread(health, ServerSettings(address=server.address)) == grpc.StatusCode.UNAVAILABLE.name


@pytest.mark.parametrize("mutual", [False, True])
async def test_an_encrypted_server_is_asked_whatever_its_name(tmp_path: Path, *, mutual: bool) -> None:
    ca, cert, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(ca)
    issued = authority.issue_cert("*.memoryd.example")
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    client_ca = ca if mutual else None
    server = echo_server(address="0.0.0.0:0", tls_cert=cert, tls_key=key, tls_client_ca=client_ca)
    settings = ServerSettings(tls_cert=cert, tls_key=key, tls_client_ca=client_ca)
    async with server:
        settings = settings.model_copy(update={"address": server.address})
        assert await asyncio.to_thread(health, settings, LIVENESS) == "SERVING"
        assert await asyncio.to_thread(health, settings) == "NOT_SERVING"
    assert await asyncio.to_thread(health, settings) == grpc.StatusCode.UNAVAILABLE.name


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
