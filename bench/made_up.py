"""Made-up vectors in place of a model's: embedding takes no time that counts, so that everything else is measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from memoryd.ports import Embedder, Embeddings, TextKind

# Drawn once: to draw a vector and a sketch for each text would take some .06 ms, a tenth of all that is measured.
_NOISE = np.random.default_rng(7).standard_normal(1 << 18).astype(np.float32)
_NOISE_BYTES = _NOISE.tobytes()


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
    """Add two parts of the noise, at places that the text's hash names."""
    first, second = (int.from_bytes(half) % (len(_NOISE) - dimensions) for half in _hash(text))
    vector = _NOISE[first : first + dimensions] + _NOISE[second : second + dimensions]
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _bits(text: str, size: int) -> bytes:
    first = int.from_bytes(_hash(text)[0]) % max(len(_NOISE_BYTES) - size, 1)
    return _NOISE_BYTES[first : first + size]


def _hash(text: str) -> tuple[bytes, bytes]:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return digest[:8], digest[8:]
