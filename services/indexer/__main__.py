"""The indexer as a process: `python -m services.indexer`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from pydantic import Field

from memoryd.adapters.distributed import EngineSettings, open_engines
from memoryd.adapters.nats.keys import NatsKeyStore
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.domain.generations import Generation
from memoryd.generations.live import Live
from memoryd.process.background import follow
from memoryd.process.run import run
from memoryd.process.waiting import until_available
from memoryd.server.credentials import service_authenticator
from memoryd.server.lifecycle import Server
from services.indexer.current import CurrentIndexing
from services.indexer.generation import Failure, IndexedGeneration, indexed
from services.indexer.keeper import Keeper
from services.indexer.kin import Kin
from services.indexer.rpc import SERVICE, add_to
from services.indexer.service import Indexer
from services.indexer.settings import GenerationSettings, IndexerSettings


class Settings(EngineSettings):
    """Settings of the process."""

    indexer: IndexerSettings = Field(default_factory=IndexerSettings)
    generations: GenerationSettings = Field(default_factory=GenerationSettings)


async def serve(settings: Settings) -> None:
    """Open the engines, then index and serve."""
    authenticate = service_authenticator(settings.grpc, settings.service)
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        consumer = settings.indexer.consumer
        engines = await open_engines(
            settings, "indexer", server, stack, consumer=consumer, lease=settings.indexer.lease
        )
        keys = await until_available(
            server,
            f"NATS at {settings.nats.where}",
            partial(NatsKeyStore.open, engines.connection, settings.namespace, replicas=settings.nats.replicas),
        )
        workspace = NatsWorkspace(engines.connection, settings.namespace, engines.log)
        failure, kin = Failure(), Kin()

        @asynccontextmanager
        async def at_work(generation: Generation) -> AsyncIterator[IndexedGeneration]:
            async with engines.open(generation) as parts:
                with kin.member(parts) as others:
                    indexer = Indexer(
                        log=engines.log,
                        manifest=parts.manifest,
                        vectors=parts.vectors,
                        texts=parts.texts,
                        embedder=parts.embedder,
                        settings=settings.indexer.model_copy(update={"consumer": parts.consumer}),
                        workspace=workspace,
                        others=others,
                    )
                    async with indexed(parts, indexer, failure, settings.grpc.drain) as generation_at_work:
                        yield generation_at_work

        live = Live(engines.registry, at_work)
        await engines.start(live, stack)
        keeper = Keeper(
            registry=engines.registry,
            live=live,
            indexed_of=lambda generation: generation,
            log=engines.log,
            target=lambda: (engines.models.wanted, "") if engines.models.wanted else None,
            erase=engines.erase,
            settings=settings.generations,
            restarted=False,
        )
        follow(keeper.run(), stack)
        indexer = CurrentIndexing(live, lambda generation: generation, failure, keys)
        add_to(server, indexer, authenticate)
        stack.push_async_callback(server.drain)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve())
            group.create_task(indexer.closed())


if __name__ == "__main__":
    run("indexer", Settings, serve)
