"""The adapters on NATS, each with a connection of its own, in buckets that its place alone names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.adapters.embedded.folder import FolderWorkspace
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.generations import NatsGenerations
from memoryd.adapters.nats.keys import NatsKeyStore
from memoryd.adapters.nats.manifest import NatsManifest
from memoryd.adapters.nats.responder import serve_workspace
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.domain.names import Scope
from memoryd.folder.rules import FolderRules
from services.workspace.service import WorkspaceService
from services.workspace.settings import WorkspaceServiceSettings
from tests.servers.nats import nats_prefix, nats_url


class _FileLog(NatsFileLog):
    """Closes its connection, too."""

    async def close(self) -> None:
        await super().close()
        await self._bucket.connection.close()


class _Keys(NatsKeyStore):
    """Closes its connection, too."""

    async def close(self) -> None:
        await super().close()
        await self._bucket.connection.close()


class _Generations(NatsGenerations):
    """Closes its connection, too."""

    async def close(self) -> None:
        await super().close()
        await self._bucket.connection.close()


class _Manifest(NatsManifest):
    """Closes its connection, too."""

    async def close(self) -> None:
        await super().close()
        await self._bucket.connection.close()


@asynccontextmanager
async def serve_folder(roots: Mapping[Scope, Path], rules: FolderRules, place: Path) -> AsyncIterator[NatsWorkspace]:
    """Serve the folders from one connection, and read them over another."""
    prefix = nats_prefix(place)
    owner, reader = [await NatsConnection.open([nats_url()]) for _ in range(2)]
    log = await NatsFileLog.open(owner, prefix)
    service = WorkspaceService(roots, log, WorkspaceServiceSettings(), dict.fromkeys(roots, rules))
    responder = await serve_workspace(
        owner, prefix, FolderWorkspace(roots, dict.fromkeys(roots, rules), service, log), roots
    )
    yield NatsWorkspace(reader, prefix, await NatsFileLog.open(reader, prefix))
    await responder.close()
    await service.close()
    await owner.close()
    await reader.close()


async def file_log(place: Path, lease: float) -> NatsFileLog:
    connection = await NatsConnection.open([nats_url()])
    return await _FileLog.open(connection, nats_prefix(place), lease=lease)


async def manifest(place: Path) -> NatsManifest:
    connection = await NatsConnection.open([nats_url()])
    return await _Manifest.open(connection, nats_prefix(place), "generation")


async def generations(place: Path) -> NatsGenerations:
    connection = await NatsConnection.open([nats_url()])
    return await _Generations.open(connection, nats_prefix(place))


async def key_store(place: Path) -> NatsKeyStore:
    connection = await NatsConnection.open([nats_url()])
    return await _Keys.open(connection, nats_prefix(place))
