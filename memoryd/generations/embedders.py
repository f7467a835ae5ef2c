"""Embedders of generations: a model that is away, and the model of whichever generation answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from memoryd.domain.queries import ModelInfo
from memoryd.errors import MODEL_ABSENT, UnavailableError
from memoryd.generations.live import Live
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer

P = TypeVar("P")


class AbsentEmbedder(Embedder):
    """A model that can't be asked: its generation is searched by words alone, and takes in nothing."""

    def __init__(self, model: ModelInfo, why: str) -> None:
        """Describe the model, and say why it is away and what to do."""
        self._model, self._why = model, why

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return self._model

    async def tokenizer(self) -> Tokenizer:
        """Raise UnavailableError."""
        self._refuse()

    async def embed(
        self,
        texts: Sequence[str],  # noqa: ARG002  (the port's, as all others here)
        *,
        kind: TextKind,  # noqa: ARG002
        lane: Lane,  # noqa: ARG002
        timeout: float,  # noqa: ARG002
        sketches: bool = False,  # noqa: ARG002
        tenant: str = "",  # noqa: ARG002
    ) -> Embeddings:
        """Raise UnavailableError."""
        self._refuse()

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:  # noqa: ARG002  (the port's)
        """Raise UnavailableError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnavailableError(self._why, reason=MODEL_ABSENT)


class CurrentEmbedder(Embedder):
    """The model of the generation that answers now."""

    def __init__(self, live: Live[P], embedder_of: Callable[[P], Embedder]) -> None:
        """Take the open generations, and how to get at the model of one."""
        self._live, self._of = live, embedder_of

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return await self._of(self._live.current).info()

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer."""
        return await self._of(self._live.current).tokenizer()

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
        """Embed texts within `timeout` seconds."""
        return await self._of(self._live.current).embed(
            texts, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant
        )

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query within `timeout` seconds."""
        return await self._of(self._live.current).rerank(query, texts, timeout=timeout)
