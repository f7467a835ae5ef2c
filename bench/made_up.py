"""Made-up vectors in place of a model's: embedding takes no time that counts, so that everything else is measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryd.domain.queries import ModelInfo
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer


class MadeUpPassages:
    """Embeds queries with the model, and passages by a hash of their text."""

    def __init__(self, model: Embedder) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the embedder has)
        """Pass on."""
        return getattr(self._model, name)

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return await self._model.info()

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer."""
        return await self._model.tokenizer()

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
        """Embed queries; make vectors and sketches up for passages."""
        if kind is TextKind.QUERY:
            return await self._model.embed(
                texts, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant
            )
        dimensions = (await self._model.info()).dimensions
        vectors = np.stack([_vector(text, dimensions) for text in texts])
        width = -(-dimensions // 8)
        made_up = tuple(_bits(text, width * (len(text) // 4)) for text in texts) if sketches else ()
        return Embeddings(vectors, sum(map(len, texts)) // 4, made_up)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Pass on."""
        return await self._model.rerank(query, texts, timeout=timeout)


def _vector(text: str, dimensions: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    vector = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _bits(text: str, size: int) -> bytes:
    return hashlib.shake_128(text.encode()).digest(size)
