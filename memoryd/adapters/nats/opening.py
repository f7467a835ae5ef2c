"""Connecting to NATS at a process's start."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.settings import NatsSettings
from memoryd.process.waiting import until_available
from memoryd.server.lifecycle import Server


async def open_nats(settings: NatsSettings, name: str, server: Server, stack: AsyncExitStack) -> NatsConnection:
    """Connect as soon as NATS answers; the stack closes the connection, the server tells callers what is waited for."""
    connection = await until_available(server, f"NATS at {settings.where}", partial(settings.connect, name))
    stack.push_async_callback(connection.close)
    return connection
