"""What an engine is. Engines block; the service calls them from threads of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.queries import ModelInfo
from memoryd.models.tokenizer import ModelTokenizer


class Batched(Protocol):
    """Whatever computes something of token ids, batch by batch."""

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Compute one row of finite numbers for each ids. Any number of threads may call."""
        ...


class Engine(Batched, Protocol):
    """An embedding model."""

    @property
    def info(self) -> ModelInfo:
        """Describe the model."""
        ...

    @property
    def tokenizer(self) -> ModelTokenizer:
        """Give the model's tokenizer."""
        ...

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Compute vectors, shape (texts, dimensions), L2-normalised, from token ids. Any number of threads may call."""
        ...

    @property
    def token_mean(self) -> NDArray[np.float32] | None:
        """Give the model's mean token vector, shape (dimensions,); None where it gives no token vectors."""
        ...

    def encode_tokens(self, batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Compute vectors as `encode` does, and those of the tokens, shape (texts, longest, dimensions)."""
        ...


class Reranker(Batched, Protocol):
    """A cross-encoder."""

    def ids(self, query: str, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Tokenise pairs of the query and each text; those longer than the window are cut."""
        ...

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Score pairs that `ids` gave, 0 to 1 each; shape (pairs, 1). Any number of threads may call."""
        ...


def padded(batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lay token ids out as a matrix (texts, longest), padded on the right, with its attention mask."""
    lengths = np.array([len(ids) for ids in batch])
    mask = np.arange(lengths.max()) < lengths[:, None]
    matrix = np.zeros(mask.shape, np.int64)
    matrix[mask] = np.concatenate([np.asarray(ids, np.int64) for ids in batch])
    return matrix, mask.astype(np.int64)
