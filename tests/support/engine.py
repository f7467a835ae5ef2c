"""An engine that a test controls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.queries import ModelInfo
from memoryd.models.fast_tokenizer import FastEncoder
from memoryd.models.tokenizer import ModelTokenizer
from tests.support.tiny_model import TINY, tiny_checkpoint

DIMENSIONS = 4


class FakeEngine:
    """Gives each text a vector of its length and sum; one letter is one token.

    Attributes:
        open: while clear, calls wait inside the engine.
        entered: released once for each call that came in.
        batches: what was computed.
        fault: looks at a batch; raises to make it fail.
        passes: this text never waits.
        not_finite: this text's vector is not finite.
    """

    def __init__(self, window: int = 1_000, *, sketches: bool = True) -> None:
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.batches: list[list[list[int]]] = []
        self.passes: Sequence[int] = ()
        self.not_finite: Sequence[int] = ()
        self.fault: Callable[[Sequence[Sequence[int]]], None] = lambda batch: None
        self.info = ModelInfo("fake", "fake-1", DIMENSIONS, window, 0.1, 0.7, "fake", sketches=sketches)
        self.token_mean = np.zeros(DIMENSIONS, np.float32) if sketches else None
        self.tokenizer = ModelTokenizer(
            FastEncoder(tiny_checkpoint().tokenizer), TINY.query_prompt, TINY.passage_prompt
        )

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        self.entered.release()
        assert list(batch[0]) == self.passes or self.open.wait(30)
        self.fault(batch)
        self.batches.append([list(ids) for ids in batch])
        vectors = np.stack([vector_of(ids) for ids in batch])
        vectors[[list(ids) == self.not_finite for ids in batch]] = np.nan
        return vectors

    def encode_tokens(self, batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        tokens = np.full((len(batch), max(map(len, batch)), DIMENSIONS), np.nan, np.float32)
        for row, ids in zip(tokens, batch, strict=True):
            row[: len(ids)] = [token_vector_of(each) for each in ids]
        return self.encode(batch), tokens


def token_vector_of(number: int) -> NDArray[np.float32]:
    """Make the vector of one token: a function of its id."""
    return np.array([number % 2, number % 3, number % 5, number % 7], np.float32) - 1


def vector_of(ids: Sequence[int]) -> NDArray[np.float32]:
    """Make the vector of token ids: a function of them alone, of length 1."""
    vector = np.array([len(ids), sum(ids), ids[len(ids) // 2], 1], np.float32)
    return vector / np.float32(np.linalg.norm(vector))
