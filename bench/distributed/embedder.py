"""An embedder process that embeds the headings of the made-up corpus in place of its texts: indexing takes seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

from memoryd.ports import Embeddings
from memoryd.process.run import run
from memoryd.server.credentials import service_authenticator
from memoryd.server.lifecycle import Server
from services.embedder.__main__ import Settings
from services.embedder.compose import open_embedder
from services.embedder.rpc import SERVICE, add_to
from services.embedder.served import ServedEmbedder

# A heading that `bench.corpus` writes; it is in each of its chunks.
_MADE_UP = re.compile(r"Entry \d+ of \S+")


class StandIns:
    """An embedder to which a text of the made-up corpus is its heading."""

    def __init__(self, service: ServedEmbedder) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the service has)
        """Pass on."""
        return getattr(self._service, name)

    async def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        """Embed headings, and other texts as they are."""
        found = [(_MADE_UP.search(text), text) for text in texts]
        return await self._service.embed([match[0] if match else text for match, text in found], **options)


async def serve(settings: Settings) -> None:
    """As the embedder's process does."""
    authenticate = service_authenticator(settings.grpc, settings.service)
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        model = await stack.enter_async_context(open_embedder(settings.embedder))
        add_to(server, cast("ServedEmbedder", StandIns(model)), authenticate)
        stack.push_async_callback(server.drain)
        await server.serve()


if __name__ == "__main__":
    run("embedder", Settings, serve)
