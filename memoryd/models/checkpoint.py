"""A model as it comes from a source: its sizes, its weights by their Hugging Face names, its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes of a BERT encoder.

    `epsilon` is that of its layer normalisations. `first_position` is the row of a text's first token in the table of
    positions: 0 in BERT; in RoBERTa the rows up to the padding token's id are left out.
    """

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float
    first_position: int = 0

    @property
    def longest(self) -> int:
        """Most tokens of an input."""
        return self.positions - self.first_position


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A source's model. `weights` reads a tensor only when it is asked for, so that one at a time is in memory."""

    architecture: Architecture
    weights: Weights
    tokenizer: Tokenizer
    source: str


WORDS = "embeddings.word_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
TYPES = "embeddings.token_type_embeddings.weight"
EMBEDDING_NORM = "embeddings.LayerNorm"

# The dense layers and normalisations of encoder layer i are called encoder.layer.{i}.{one of these}.{weight or bias}.
QUERY, KEY, VALUE = (f"attention.self.{name}" for name in ("query", "key", "value"))
ATTENTION_OUT, ATTENTION_NORM = "attention.output.dense", "attention.output.LayerNorm"
FEED_IN, FEED_OUT, FEED_NORM = "intermediate.dense", "output.dense", "output.LayerNorm"


def tensor_shapes(sizes: Architecture) -> dict[str, tuple[int, ...]]:
    """List every tensor of the encoder with its shape; a dense layer's weight is (out, in)."""
    hidden, wide = sizes.hidden, sizes.feed_forward
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (sizes.vocabulary, hidden),
        POSITIONS: (sizes.positions, hidden),
        TYPES: (sizes.token_types, hidden),
        f"{EMBEDDING_NORM}.weight": (hidden,),
        f"{EMBEDDING_NORM}.bias": (hidden,),
    }
    square, norm = (hidden, hidden), (hidden,)
    parts: dict[str, tuple[int, ...]] = {
        **dict.fromkeys((QUERY, KEY, VALUE, ATTENTION_OUT), square),
        **dict.fromkeys((ATTENTION_NORM, FEED_NORM), norm),
        FEED_IN: (wide, hidden),
        FEED_OUT: (hidden, wide),
    }
    for layer in range(sizes.layers):
        for part, shape in parts.items():
            shapes[f"encoder.layer.{layer}.{part}.weight"] = shape
            shapes[f"encoder.layer.{layer}.{part}.bias"] = shape[:1]
    return shapes
