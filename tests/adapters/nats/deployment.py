"""Several processes on one server that can be stopped: here each is a connection of its own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.manifest import NatsManifest
from memoryd.domain.files import FileKey, FileState, Revision
from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError
from tests.servers.nats import NatsServer

T = TypeVar("T")

SCOPE = Scope("acme", "main")
OTHER = Scope("rival", "main")
LEASE = 0.3
PREFIX = "memoryd"
LONG = 20.0  # a deadline for what should take much less


class Deployment:
    """Opens what the processes of one test need, and closes it."""

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self.connections: list[NatsConnection] = []
        self._open: list[NatsFileLog | NatsManifest] = []

    async def connect(self) -> NatsConnection:
        connection = await NatsConnection.open([self.server.url])
        self.connections.append(connection)
        return connection

    async def log(self, *, known: Revision | None = None, lease: float = LEASE) -> NatsFileLog:
        log = await NatsFileLog.open(await self.connect(), PREFIX, known=known, lease=lease)
        self._open.append(log)
        return log

    async def manifest(self) -> NatsManifest:
        manifest = await NatsManifest.open(await self.connect(), PREFIX, "g1")
        self._open.append(manifest)
        return manifest

    def stop(self) -> None:
        """End the server as a power cut would."""
        self.server.process.kill()

    def start(self) -> None:
        self.server.process.start()

    def lose_everything(self) -> None:
        shutil.rmtree(self.server.store)

    def back_up(self) -> None:
        shutil.copytree(self.server.store, self.server.store.with_name("backup"))

    def restore(self) -> None:
        shutil.rmtree(self.server.store)
        shutil.copytree(self.server.store.with_name("backup"), self.server.store)

    async def close(self) -> None:
        for adapter in self._open:
            await adapter.close()
        for connection in self.connections:
            await connection.close()


async def soon(call: Callable[[], Awaitable[T]]) -> T:
    """Try until it is available again."""
    async with asyncio.timeout(LONG):
        while True:
            try:
                return await call()
            except UnavailableError:
                await asyncio.sleep(0.01)


def state(path: str = "a.md", content: str = "text\n", scope: Scope = SCOPE) -> FileState:
    return FileState(FileKey(scope, path), f"hash of {content}", content.encode(), 1.5)


async def put(
    log: NatsFileLog, path: str = "a.md", content: str = "text\n", *, scope: Scope = SCOPE, live: bool = False
) -> Revision:
    last = await log.get(FileKey(scope, path))
    return await log.put(state(path, content, scope), expected=last.revision if last else None, live=live)


async def drain(log: NatsFileLog, consumer: str = "one") -> list[str]:
    """Settle all that is there; returns the paths."""
    paths = []
    while deliveries := await log.fetch(consumer, limit=10, timeout=0):
        for delivery in deliveries:
            paths.append(delivery.file.state.key.path)
            await delivery.ack()
    return paths
