"""The embedder: a model, its tokenizer, and its limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.queries import ModelInfo
from memoryd.domain.sketches import QueryTokens


class Lane(StrEnum):
    """Queues of the embedder: a query never waits behind bulk."""

    QUERY = "query"
    BULK = "bulk"


class TextKind(StrEnum):
    """What a text is: it decides the prompt."""

    QUERY = "query"
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """What texts were turned into, in their order.

    Attributes:
        vectors: float32, shape (texts, dimensions), L2-normalised.
        tokens: tokens that were embedded.
        sketches: one of each text, where they were asked for and the texts are passages.
        query_tokens: those of each text, where sketches were asked for and the texts are queries; none at all where a
            stand-in embedded them, which gives none.
    """

    vectors: NDArray[np.float32]
    tokens: int
    sketches: tuple[bytes, ...] = ()
    query_tokens: tuple[QueryTokens, ...] = ()


class Tokenizer(Protocol):
    """The model's tokenizer, in process wherever it is needed."""

    def count(self, texts: Sequence[str], kind: TextKind = TextKind.PASSAGE) -> list[int]:
        """Tokens of each embedding input, the kind's prompt and special tokens included, however long it is."""
        ...

    def weights(self, words: Sequence[str]) -> list[float]:
        """How rare each word is: minus the sum of its pieces' unigram log-probabilities, in nats, at least 0."""
        ...


class Embedder(Protocol):
    """An embedding model, and a cross-encoder where one is configured."""

    async def info(self) -> ModelInfo:
        """Describe the model."""
        ...

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer."""
        ...

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        """Embed texts within `timeout` seconds, with token sketches where asked for.

        Tenants share the bulk lane fairly.

        Raises InvalidInputError (a text is longer than the window, or can't be encoded), ResourceExhaustedError (the
        queue is full), DeadlineExceededError, UnimplementedError (sketches of a model that gives none).
        """
        ...

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query, 0 to 1 each, within `timeout` seconds; NaN where the time did not suffice.

        Raises DeadlineExceededError where it sufficed for none, UnimplementedError where there is no cross-encoder.
        """
        ...


class StreamingEmbedder(Embedder, Protocol):
    """An embedder that takes any number of texts in one go."""

    def embed_stream(
        self,
        texts: Iterable[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> AsyncGenerator[Embeddings]:
        """Embed texts as `embed` does, in order, and give those of the next ones as they come, in bounded memory.

        Texts are asked for as they are needed; a full queue is waited for. At most `timeout` seconds pass between two
        answers, else DeadlineExceededError is raised. Close the iterator (contextlib.aclosing) to end early.
        """
        ...
