"""The embedder's use cases: embed in two lanes, rerank, describe the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from memoryd.domain.queries import ModelInfo
from memoryd.domain.scoring import Scoring
from memoryd.domain.sketches import QueryTokens
from memoryd.errors import DeadlineExceededError, InvalidInputError, MemorydError, UnavailableError, UnimplementedError
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import Embeddings, Lane, TextKind
from services.embedder.engines.engine import Engine, Reranker
from services.embedder.lane import Lane as Queue
from services.embedder.metrics import EmbedderMetrics, process_metrics
from services.embedder.requests import Request, TokenIds
from services.embedder.rerank import NAME as RERANK
from services.embedder.rerank import RerankQueue
from services.embedder.served import LaneStatus
from services.embedder.settings import EmbedderSettings
from services.embedder.sketching import Sketch, Sketcher
from services.embedder.stream import Streaming
from services.embedder.workers import Workers

_WARM_UP = "ready"
_OUTCOMES = {
    "INVALID_INPUT": "invalid",
    "RESOURCE_EXHAUSTED": "rejected",
    "DEADLINE_EXCEEDED": "expired",
}
_CLOSING = "the embedder is shutting down"
_BYTES_A_TOKEN = 4  # roughly, in English and in Chinese
_JOIN_SECONDS = 10.0
# Bytes that are tokenised on the event loop: a thread costs more than they do.
_AT_ONCE = 512


class EmbedderService(Streaming):
    """The Embedder port on an engine. Call `start` first."""

    def __init__(
        self,
        engine: Engine,
        settings: EmbedderSettings,
        *,
        reranker: Reranker | None = None,
        metrics: EmbedderMetrics | None = None,
        scoring: Scoring | None = None,
    ) -> None:
        self._engine, self._settings = engine, settings
        self._scoring = scoring
        mean = engine.token_mean
        self._sketcher = None if mean is None else Sketcher(engine.tokenizer, mean)
        self._metrics = metrics or process_metrics()
        threads = {Lane.QUERY: 1, Lane.BULK: settings.threads}
        self._queues = {
            lane: Queue(lane, batch_tokens=settings.batch, queue_tokens=settings.queue_tokens, threads=threads[lane])
            for lane in Lane
        }
        self._rerank = RerankQueue(reranker, settings, self._metrics, threads=threads[Lane.BULK]) if reranker else None
        queues: dict[str, Queue] = {lane.value: queue for lane, queue in self._queues.items()}
        if self._rerank is not None:
            queues[RERANK] = self._rerank.lane
        self._all_queues = tuple(queues.values())
        for lane, queue in queues.items():
            self._metrics.reserved.labels(lane).set_function(partial(getattr, queue, "reserved"))
            self._metrics.waiting.labels(lane).set_function(partial(getattr, queue, "waiting"))
        (probe,) = engine.tokenizer.ids([_WARM_UP], TextKind.PASSAGE)
        self._workers = [
            Workers(self._queues[Lane.QUERY], engine, self._metrics, threads=1, probe=probe),
            Workers(
                self._queues[Lane.BULK],
                engine,
                self._metrics,
                threads=threads[Lane.BULK],
                probe=probe,
                nice=settings.bulk_nice,
            ),
        ]
        # A thread a lane: a query's tokenisation does not wait for that of bulk texts either.
        self._tokenising = {lane: ThreadPoolExecutor(1, thread_name_prefix=f"tokenise-{lane}") for lane in Lane}

    async def start(self) -> None:
        """Start the threads, and embed, and rerank, a first text in each lane. Raises ModelError, UnavailableError."""
        for workers in self._workers:
            workers.start()
        if self._rerank is not None:
            self._rerank.start()
            await self.rerank(_WARM_UP, [_WARM_UP], timeout=self._settings.warm_up_timeout)
        for lane in Lane:
            await self.embed([_WARM_UP], kind=TextKind.PASSAGE, lane=lane, timeout=self._settings.warm_up_timeout)

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return replace(self._engine.info, reranks=self._rerank is not None, scoring=self._scoring)

    def lanes(self) -> Sequence[LaneStatus]:
        """Tell how full the queues are."""
        return [LaneStatus(queue.name, queue.reserved, queue.limit, queue.pace.rate) for queue in self._all_queues]

    async def tokenizer(self) -> ModelTokenizer:
        """Give the model's tokenizer."""
        return self._engine.tokenizer

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
        """Embed texts within `timeout` seconds; see the port for its errors."""
        with self._counted(lane):
            sketch = self._sketch(kind) if sketches else None
            return await self._embed(texts, kind, self._queues[lane], timeout, sketch, tenant)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query, 0 to 1 each. Raises UnimplementedError where no cross-encoder is configured."""
        if self._rerank is None:
            raise UnimplementedError(
                "no cross-encoder is configured: set MEMORYD_EMBEDDER_CROSS_ENCODER to a model, or rerank without one"
            )
        if not texts:
            return []
        with self._counted(RERANK):
            return await self._rerank.score(query, texts, timeout)

    async def close(self) -> None:
        """Refuse what is queued, end after the batches that run."""
        for queue in self._queues.values():
            for request in queue.close():
                request.fail(UnavailableError(_CLOSING))
        for executor in self._tokenising.values():
            executor.shutdown(wait=False)  # calls that are being tokenised find their lane closed
        for workers in self._workers:
            await asyncio.to_thread(workers.join, _JOIN_SECONDS)
        if self._rerank is not None:
            await asyncio.to_thread(self._rerank.close, UnavailableError(_CLOSING))

    @contextmanager
    def _counted(self, lane: str) -> Iterator[None]:
        """Count how a call ends."""
        outcome = "failed"
        try:
            yield
            outcome = "ok"
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except MemorydError as error:
            outcome = _OUTCOMES.get(error.reason, outcome)
            raise
        finally:
            self._metrics.requests.labels(lane, outcome).inc()

    def _sketch(self, kind: TextKind) -> Sketch:
        if self._sketcher is None:
            name = self._engine.info.name
            raise UnimplementedError(f"{name} gives no token sketches: leave them out", field="sketches")
        return self._sketcher.of(kind)

    async def _embed(
        self, texts: Sequence[str], kind: TextKind, queue: Queue, timeout: float, sketch: Sketch | None, tenant: str
    ) -> Embeddings:
        if not texts:
            return Embeddings(np.empty((0, self._engine.info.dimensions), np.float32), 0)
        if timeout <= 0:
            raise DeadlineExceededError("the deadline had passed before the texts were embedded")
        deadline = time.monotonic() + timeout
        estimate = sum(len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts)
        reserved = estimate // _BYTES_A_TOKEN
        queue.reserve(reserved, timeout)
        request = None
        try:
            async with asyncio.timeout(timeout):
                ids = await self._ids(texts, kind, Lane(queue.name), estimate)
                self._check_window(ids)
                request = Request(ids, self._engine.info.dimensions, deadline, sketch=sketch, tenant=tenant)
                queue.recount(reserved, request.tokens)
                reserved = request.tokens
                queue.put(request)
                vectors = await request.result()
                return Embeddings(
                    vectors,
                    request.tokens,
                    tuple(each for each in request.sketches if isinstance(each, bytes)),
                    tuple(each for each in request.sketches if isinstance(each, QueryTokens)),
                )
        except TimeoutError:
            raise DeadlineExceededError(f"{len(texts)} texts were not embedded within {timeout:.3g} s") from None
        finally:
            if request is not None:
                request.abandon()
                queue.remove(request)
            queue.release(reserved)

    async def _ids(self, texts: Sequence[str], kind: TextKind, lane: Lane, size: int) -> Sequence[TokenIds]:
        if size <= _AT_ONCE:
            return self._engine.tokenizer.ids(texts, kind)
        executor = self._tokenising[lane]
        return await asyncio.get_running_loop().run_in_executor(executor, self._engine.tokenizer.ids, texts, kind)

    def _check_window(self, ids: Sequence[TokenIds]) -> None:
        window = self._engine.info.window
        for index, each in enumerate(ids):
            if len(each) > window:
                raise InvalidInputError(
                    f"text {index} has {len(each)} tokens with its prompt, the model's window is {window}: split it",
                    index=str(index),
                )
