"""The gateway's use cases on fakes, behind a real gRPC server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memoryd.client import MemorydClient
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.gateway.rpc import add_to
from tests.support.gateway import Gateway


@asynccontextmanager
async def gateway_server(
    gateway: Gateway, address: str = "127.0.0.1:0", settings: ServerSettings | None = None
) -> AsyncIterator[Server]:
    """Serve a gateway until the block ends."""
    server = Server(settings or ServerSettings(address=address))
    add_to(server, gateway.service, gateway.keys)
    async with server:
        served = asyncio.create_task(server.serve())
        try:
            yield server
        finally:
            served.cancel()
            await asyncio.wait({served})


@asynccontextmanager
async def gateway_client(gateway: Gateway, key: str = "one-workspace") -> AsyncIterator[MemorydClient]:
    """Serve a gateway and give a client to it."""
    async with gateway_server(gateway) as server, MemorydClient(server.address, key) as client:
        yield client
