"""Rerank calls: pairs of a query and a text in a lane of their own, batched like all texts."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from memoryd.errors import DeadlineExceededError, MemorydError
from services.embedder.engines.engine import Reranker
from services.embedder.lane import Lane
from services.embedder.metrics import EmbedderMetrics
from services.embedder.requests import Request
from services.embedder.settings import EmbedderSettings
from services.embedder.workers import Workers

NAME = "rerank"
_PROBE = "ready"
_BYTES_A_TOKEN = 4
_JOIN_SECONDS = 10.0


class RerankQueue:
    """A bounded queue before a cross-encoder; several calls share batches. `start` it first."""

    def __init__(
        self, reranker: Reranker, settings: EmbedderSettings, metrics: EmbedderMetrics, *, threads: int
    ) -> None:
        self._reranker = reranker
        self._lane = Lane(
            NAME,
            batch_tokens=settings.rerank_batch_tokens,
            queue_tokens=settings.rerank_queue_tokens,
            threads=threads,
        )
        (probe,) = reranker.ids(_PROBE, [_PROBE])
        self._workers = Workers(self._lane, reranker, metrics, threads=threads, probe=probe)
        self._tokenising = ThreadPoolExecutor(1, thread_name_prefix="tokenise-rerank")

    @property
    def lane(self) -> Lane:
        """The queue, to be counted."""
        return self._lane

    def start(self) -> None:
        """Start the threads."""
        self._workers.start()

    async def score(self, query: str, texts: Sequence[str], timeout: float) -> list[float]:
        """Score texts, 0 to 1 each, first texts first; NaN for those that the time did not suffice for.

        Raises DeadlineExceededError where it sufficed for none, ResourceExhaustedError, UnavailableError.
        """
        end = time.monotonic() + timeout
        per_text = len(query.encode(errors="replace"))
        reserved = sum(per_text + len(text.encode(errors="replace")) for text in texts) // _BYTES_A_TOKEN
        self._lane.reserve(reserved)
        request = None
        try:
            async with asyncio.timeout(end - time.monotonic()):
                pairs = await asyncio.get_running_loop().run_in_executor(
                    self._tokenising, self._reranker.ids, query, texts
                )
                request = Request(pairs, 1, end)
                self._lane.put(request)
                await request.result()
        except TimeoutError:
            pass
        finally:
            if request is not None:
                request.abandon()
                self._lane.remove(request)
            self._lane.release(reserved)
        scores = request.so_far()[:, 0].tolist() if request else []
        if all(map(math.isnan, scores)):
            raise DeadlineExceededError(f"none of {len(texts)} texts was reranked within {timeout:.3g} s")
        return scores

    def close(self, error: MemorydError) -> None:
        """Refuse what is queued, and end after the batches that run."""
        for request in self._lane.close():
            request.fail(error)
        self._tokenising.shutdown(wait=False)
        self._workers.join(_JOIN_SECONDS)
