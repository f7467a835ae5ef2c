"""An embedder process that embeds the headings of the made-up corpus in place of its texts: indexing takes seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bench.distributed.embedders import serve_as
from memoryd.ports import Embeddings
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


if __name__ == "__main__":
    serve_as(StandIns)
