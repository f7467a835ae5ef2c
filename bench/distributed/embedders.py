"""Embedder processes of which a part is made up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, cast

from memoryd.process.run import run
from memoryd.server.credentials import service_authenticator
from memoryd.server.lifecycle import Server
from services.embedder.__main__ import Settings
from services.embedder.compose import open_embedder
from services.embedder.rpc import SERVICE, add_to
from services.embedder.served import ServedEmbedder


def serve_as(wrap: Callable[[ServedEmbedder], Any]) -> None:
    """Run the embedder's process with something of its shape in front of its model."""

    async def serve(settings: Settings) -> None:
        authenticate = service_authenticator(settings.grpc, settings.service)
        async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
            model = await stack.enter_async_context(open_embedder(settings.embedder))
            add_to(server, cast("ServedEmbedder", wrap(model)), authenticate)
            stack.push_async_callback(server.drain)
            await server.serve()

    run("embedder", Settings, serve)
