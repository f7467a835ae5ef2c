"""The embedder as a process: `python -m services.embedder`."""

from __future__ import annotations

from contextlib import AsyncExitStack

from pydantic import Field

from memoryd.models.progress import described
from memoryd.process.run import run
from memoryd.process.settings import ProcessSettings
from memoryd.server.credentials import ServiceCredentialSettings, service_authenticator
from memoryd.server.lifecycle import Server
from services.embedder.compose import open_embedder
from services.embedder.rpc import SERVICE, add_to
from services.embedder.settings import EmbedderSettings


class Settings(ProcessSettings):
    """Settings of the process."""

    service: ServiceCredentialSettings = Field(default_factory=ServiceCredentialSettings)
    embedder: EmbedderSettings = Field(default_factory=EmbedderSettings)


async def serve(settings: Settings) -> None:
    """Load the model, then serve."""
    authenticate = service_authenticator(settings.grpc, settings.service)
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        server.waits_for = "its model to be loaded"

        def progress(stage: str, done: int, total: int) -> None:
            server.waits_for = f"its model to be loaded ({described(stage, done, total)})"

        embedder = await stack.enter_async_context(open_embedder(settings.embedder, progress=progress))
        add_to(server, embedder, authenticate)
        stack.push_async_callback(server.drain)
        await server.serve()


if __name__ == "__main__":
    run("embedder", Settings, serve)
