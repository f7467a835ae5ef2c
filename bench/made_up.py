"""Made-up vectors in place of a model's: embedding takes no time that counts, so that everything else is measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryd.ports import Embedder, Embeddings, TextKind


class MadeUpPassages:
    """Embeds queries with the model, and passages by a hash of their text."""

    def __init__(self, model: Embedder) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the embedder has)
        """Pass on."""
        return getattr(self._model, name)

    async def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        """Embed queries; make vectors and sketches up for passages."""
        if options["kind"] is TextKind.QUERY:
            return await self._model.embed(texts, **options)
        dimensions = (await self._model.info()).dimensions
        vectors = np.stack([_vector(text, dimensions) for text in texts])
        width = -(-dimensions // 8)
        sketches = options.get("sketches", False)
        made_up = tuple(_bits(text, width * (len(text) // 4)) for text in texts) if sketches else ()
        return Embeddings(vectors, sum(map(len, texts)) // 4, made_up)


def _vector(text: str, dimensions: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    vector = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _bits(text: str, size: int) -> bytes:
    return hashlib.shake_128(text.encode()).digest(size)
