"""The indexer as a process: `python -m services.indexer`."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from pydantic import Field

from memoryd.adapters.distributed import EngineSettings, open_engines
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.process.run import run
from memoryd.process.waiting import until_available
from memoryd.server.credentials import service_authenticator
from memoryd.server.lifecycle import Server
from services.indexer.rpc import SERVICE, add_to
from services.indexer.service import Indexer
from services.indexer.settings import IndexerSettings


class Settings(EngineSettings):
    """Settings of the process."""

    indexer: IndexerSettings = Field(default_factory=IndexerSettings)


async def serve(settings: Settings) -> None:
    """Open the engines, then index and serve."""
    authenticate = service_authenticator(settings.grpc, settings.service)
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        engines = await open_engines(settings, "indexer", server, stack, lease=settings.indexer.lease)
        indexer = Indexer(
            log=engines.log,
            manifest=engines.manifest,
            vectors=engines.vectors,
            texts=engines.texts,
            embedder=engines.embedder,
            settings=settings.indexer.model_copy(update={"consumer": engines.consumer(settings.indexer.consumer)}),
            workspace=NatsWorkspace(engines.connection, settings.namespace, engines.log),
        )
        await until_available(server, f"NATS at {settings.nats.where}", indexer.start)
        stack.push_async_callback(indexer.stop, settings.grpc.drain)
        add_to(server, indexer, authenticate)
        stack.push_async_callback(server.drain)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve())
            group.create_task(indexer.closed())


if __name__ == "__main__":
    run(Settings, serve)
