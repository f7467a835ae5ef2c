"""A cross-encoder that a test controls."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Lengths:
    """Scores a text by its length, at most 1024; a character of it is a token.

    Attributes:
        open: while clear, batches wait inside.
        entered: released once for each batch that came in.
        batches: lengths of what was scored.
        gates: after so many batches, the next ones wait inside.
        broken: whether batches fail.
    """

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.batches: list[list[int]] = []
        self.broken = False
        self.gates = 10**9

    def ids(self, query: str, texts: Sequence[str]) -> list[list[int]]:
        return [[0] * len(text) for text in texts]

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        self.entered.release()
        self.gates -= 1
        if self.gates < 0:
            self.open.clear()
        assert self.open.wait(30)
        if self.broken:
            raise RuntimeError("boom")
        self.batches.append([len(ids) for ids in batch])
        return np.array([[len(ids) / 1024] for ids in batch], np.float32)
