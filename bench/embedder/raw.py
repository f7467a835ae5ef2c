"""The raw engine: token ids sorted by length, packed to the same budget, in a loop on as many threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.ports import TextKind
from services.embedder.compose import load_engine
from services.embedder.settings import EmbedderSettings


class Raw:
    """An engine of this process."""

    def __init__(self, settings: EmbedderSettings) -> None:
        self.engine = load_engine(settings)
        self._budget = settings.batch
        self._nice = settings.bulk_nice
        self._threads = settings.threads

    def rate(self, texts: Sequence[str]) -> float:
        """Embed texts once; tokens a second. They are tokenised before the clock starts."""
        ids = self.engine.tokenizer.ids(texts, TextKind.PASSAGE)
        batches = iter(list(_batches(sorted(ids, key=len, reverse=True), self._budget)))
        lock = threading.Lock()

        def loop() -> None:
            # What the bulk lane's threads do, too: beside other work of the machine both must have the same share.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _niceness() + self._nice)
            while True:
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                self.engine.encode(batch)

        threads = [threading.Thread(target=loop) for _ in range(self._threads)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(map(len, ids)) / (time.perf_counter() - began)

    def query(self, text: str) -> float:
        """Tokenise and embed one query; seconds."""
        began = time.perf_counter()
        self.engine.encode(self.engine.tokenizer.ids([text], TextKind.QUERY))
        return time.perf_counter() - began

    def alone(self, text: str) -> NDArray[np.float32]:
        """Embed one text by itself."""
        vector: NDArray[np.float32] = self.engine.encode(self.engine.tokenizer.ids([text], TextKind.PASSAGE))[0]
        return vector


def _batches(ids: Sequence[Sequence[int]], budget: int) -> Iterator[list[Sequence[int]]]:
    """Pack ids, longest first, so that no batch has more tokens than the budget, padding included."""
    batch: list[Sequence[int]] = []
    for each in ids:
        if batch and (len(batch) + 1) * len(batch[0]) > budget:
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


def _niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, os.getpid())
