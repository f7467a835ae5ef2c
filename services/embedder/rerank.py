"""Rerank calls, one at a time on a thread of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from memoryd.errors import DeadlineExceededError, ResourceExhaustedError, UnavailableError
from services.embedder.engines.engine import Reranker


class RerankQueue:
    """A bounded queue before a cross-encoder."""

    def __init__(self, reranker: Reranker, *, batch: int, waiting: int) -> None:
        self._reranker, self._batch, self._limit = reranker, batch, waiting
        self._calls = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder-rerank")

    async def score(self, query: str, texts: Sequence[str], timeout: float) -> list[float]:
        """Score texts, 0 to 1 each. Raises DeadlineExceededError, ResourceExhaustedError, UnavailableError."""
        if self._calls > self._limit:
            raise ResourceExhaustedError(f"{self._calls} rerank calls are waiting: try again later")
        deadline = time.monotonic() + timeout
        self._calls += 1
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._score, query, texts, deadline
                )
        except TimeoutError:
            raise DeadlineExceededError(f"{len(texts)} texts were not reranked within {timeout:.3g} s") from None
        finally:
            self._calls -= 1

    def close(self) -> None:
        """End after the batch that runs."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        scores: list[float] = []
        for first in range(0, len(texts), self._batch):
            if time.monotonic() > deadline:  # nobody waits any more
                raise TimeoutError
            try:
                scores += self._reranker.score(query, texts[first : first + self._batch])
            except Exception as error:
                raise UnavailableError("the cross-encoder failed: see the embedder's log, then try again") from error
        return scores
