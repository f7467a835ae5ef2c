"""What the rpc module serves: an engine of this process, a provider, or a chain of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import StreamingEmbedder


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """A queue now: tokens of its calls, tokens that it takes, tokens a second (0: not known yet)."""

    name: str
    reserved: int
    limit: int
    pace: float


class ServedEmbedder(StreamingEmbedder, Protocol):
    """An embedder that also gives its tokenizer away."""

    async def tokenizer(self) -> ModelTokenizer:
        """Give what counts tokens and weighs words."""
        ...

    def lanes(self) -> Sequence[LaneStatus]:
        """Tell how full the queues are."""
        ...

    async def close(self) -> None:
        """Refuse what is queued, and end."""
        ...
