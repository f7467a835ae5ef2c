"""What the rpc module serves: an engine of this process, a provider, or a chain of both."""

from __future__ import annotations

from typing import Protocol

from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import StreamingEmbedder


class ServedEmbedder(StreamingEmbedder, Protocol):
    """An embedder that also gives its tokenizer away."""

    async def tokenizer(self) -> ModelTokenizer:
        """Give what counts tokens and weighs words."""
        ...

    async def close(self) -> None:
        """Refuse what is queued, and end."""
        ...
