"""The search service as a process: `python -m services.search`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from pydantic import Field

from memoryd.adapters.distributed import EngineSettings, open_engines
from memoryd.domain.generations import Generation
from memoryd.generations.live import Live
from memoryd.process.run import run
from memoryd.server.credentials import service_authenticator
from memoryd.server.lifecycle import Server
from services.search.current import CurrentSearch
from services.search.rpc import SERVICE, add_to
from services.search.service import SearchService
from services.search.settings import SearchSettings


class Settings(EngineSettings):
    """Settings of the process."""

    consumer: str = Field(
        default="indexer",
        validation_alias="MEMORYD_INDEXER_CONSUMER",
        description="As the indexer's: what it has not settled is not yet searchable.",
    )
    search: SearchSettings = Field(default_factory=SearchSettings)


async def serve(settings: Settings) -> None:
    """Open the engines, then serve."""
    authenticate = service_authenticator(settings.grpc, settings.service)
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        engines = await open_engines(settings, "search", server, stack, consumer=settings.consumer)

        @asynccontextmanager
        async def searched(generation: Generation) -> AsyncIterator[SearchService]:
            async with engines.open(generation) as parts:
                yield SearchService(
                    embedder=parts.embedder,
                    vectors=parts.vectors,
                    texts=parts.texts,
                    manifest=parts.manifest,
                    log=engines.log,
                    consumer=parts.consumer,
                    settings=settings.search,
                )

        live = Live(engines.registry, searched, current_only=True)
        await engines.start(live, stack)
        service = CurrentSearch(live, lambda search: search)
        add_to(server, service, authenticate)
        stack.push_async_callback(server.drain)
        await server.serve()


if __name__ == "__main__":
    run("search", Settings, serve)
