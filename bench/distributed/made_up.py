"""An embedder process that makes the vectors of passages up: what an import costs besides the model."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import cast

from bench.made_up import MadeUpPassages
from memoryd.process.run import run
from memoryd.server.credentials import service_authenticator
from memoryd.server.lifecycle import Server
from services.embedder.__main__ import Settings
from services.embedder.compose import open_embedder
from services.embedder.rpc import SERVICE, add_to
from services.embedder.served import ServedEmbedder


async def serve(settings: Settings) -> None:
    """As the embedder's process does."""
    authenticate = service_authenticator(settings.grpc, settings.service)
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        model = await stack.enter_async_context(open_embedder(settings.embedder))
        add_to(server, cast("ServedEmbedder", MadeUpPassages(model)), authenticate)
        stack.push_async_callback(server.drain)
        await server.serve()


if __name__ == "__main__":
    run("embedder", Settings, serve)
