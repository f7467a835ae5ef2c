"""The threads that run batches. Whatever happens in one, no caller is left waiting."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from memoryd import tracing
from memoryd.errors import InvalidInputError, UnavailableError
from services.embedder.engines.engine import Batched
from services.embedder.lane import Lane
from services.embedder.metrics import BatchMetrics, EmbedderMetrics
from services.embedder.requests import Text
from services.embedder.sketching import Sketched

_BEFORE_REPLACEMENT = 0.1  # seconds: what kills each thread at its start must not take all of a core

EncodeTokens = Callable[[Sequence[Sequence[int]]], tuple[NDArray[np.float32], NDArray[np.float32]]]

_log = structlog.get_logger(__name__)


class Workers:
    """Threads that serve one lane."""

    def __init__(
        self,
        lane: Lane,
        engine: Batched,
        metrics: EmbedderMetrics,
        *,
        threads: int,
        probe: Sequence[int],
        nice: int = 0,
    ) -> None:
        """Keep what they need.

        Args:
            lane: where batches come from.
            engine: what runs them.
            metrics: where they are counted.
            threads: how many there are.
            probe: token ids of a text that a working engine can embed.
            nice: how far they give way to other threads.
        """
        self._lane, self._engine, self._metrics, self._probe, self._nice = lane, engine, metrics, probe, nice
        self._counted = BatchMetrics(metrics, lane.name)
        self._threads = [self._thread() for _ in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        """Wait until the batches that run are done and the threads have ended; the lane must be closed."""
        end = time.monotonic() + seconds
        while alive := [thread for thread in self._threads if thread.is_alive()]:
            if (left := end - time.monotonic()) <= 0:
                return
            alive[0].join(left)

    def _thread(self) -> threading.Thread:
        return threading.Thread(target=self._live, name=f"embedder-{self._lane.name}", daemon=True)

    def _live(self) -> None:
        """Serve the lane until it is closed; what this thread dies of, another one takes its place after."""
        try:
            self._give_way()
            self._run()
        except BaseException:  # noqa: BLE001  (whatever ends a thread must not end the lane)
            _log.exception("embedder worker died and is replaced", lane=self._lane.name)
            self._metrics.worker_deaths.labels(self._lane.name).inc()
            time.sleep(_BEFORE_REPLACEMENT)
            thread = self._thread()
            self._threads[self._threads.index(threading.current_thread())] = thread
            thread.start()

    def _give_way(self) -> None:
        if self._nice:  # Linux: each thread has its own niceness
            try:
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _niceness() + self._nice)
            except OSError as error:
                _log.warning("bulk threads can't give way to others", error=error.strerror)

    def _run(self) -> None:
        while (batch := self._lane.take()) is not None:
            try:
                self._embed(batch)
            except BaseException as error:  # noqa: BLE001  (the thread must live on, and the callers get an answer)
                _log.exception("embedder worker failed", lane=self._lane.name)
                for text in batch:
                    text.request.fail(self._failed(error))

    def _embed(self, batch: list[Text]) -> None:
        """Run a batch; where it fails, halves of it, down to the text that is to blame."""
        began = time.monotonic()
        try:
            vectors, sketches = self._encode(batch)
        except BaseException as error:  # noqa: BLE001  (as in _run)
            self._metrics.batch_failures.labels(self._lane.name).inc()
            _log.warning("batch failed", lane=self._lane.name, texts=len(batch), error=repr(error))
            self._note(batch, began, time.monotonic() - began, type(error).__name__)
            self._find_cause(batch, error)
            return
        ended = time.monotonic()
        for text, vector, sketch in zip(batch, vectors, sketches, strict=True):
            text.request.put(text.index, vector, sketch)
        self._note(batch, began, ended - began)  # after the answers: nobody waits for what is counted

    def _find_cause(self, batch: list[Text], error: BaseException) -> None:
        """Tell a text that the model fails on from an engine that fails on everything."""
        if not self._is_sound():
            for text in batch:
                text.request.fail(self._failed(error))
        elif len(batch) == 1:
            index = batch[0].index
            batch[0].request.fail(
                InvalidInputError(
                    f"text {index} can't be embedded: the model fails on it. Leave it out or change it.",
                    index=str(index),
                )
            )
        else:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                if wanted := [text for text in half if not text.request.over]:
                    self._embed(wanted)

    def _is_sound(self) -> bool:
        try:
            return bool(np.isfinite(self._engine.encode([self._probe])).all())
        except BaseException:  # noqa: BLE001  (as in _run)
            return False

    def _encode(self, batch: Sequence[Text]) -> tuple[NDArray[np.float32], list[Sketched | None]]:
        ids = [text.ids for text in batch]
        sketches: list[Sketched | None] = [None] * len(batch)
        encode_tokens: EncodeTokens | None = getattr(self._engine, "encode_tokens", None)  # a cross-encoder has none
        if encode_tokens and any(text.request.sketch for text in batch):
            vectors, by_token = encode_tokens(ids)
            sketches = [_sketch(text, rows) for text, rows in zip(batch, by_token, strict=True)]
        else:
            vectors = self._engine.encode(ids)
        if not np.isfinite(vectors).all():
            raise ValueError("the model gave values that are not finite")
        return vectors, sketches

    def _failed(self, error: BaseException) -> UnavailableError:
        what = "cross-encoder" if self._lane.name == "rerank" else "embedding engine"
        failed = UnavailableError(f"the {what} failed: see the embedder's log, then try again")
        failed.__cause__ = error
        return failed

    def _note(self, batch: Sequence[Text], began: float, seconds: float, failed: str = "") -> None:
        """Count a batch, and how long the calls in it had waited; add its span to their traces."""
        tokens, padding = _size(batch)
        if not failed:
            self._lane.pace.note(tokens, seconds)
            self._counted.batch(len(batch), tokens, padding, seconds)
        requests = list(dict.fromkeys(text.request for text in batch))
        for request in requests:
            if request.first_batch is None:
                request.first_batch = began
                self._counted.queued(began - request.created)
        tracing.batch(
            "embedder.batch",
            [request.span for request in requests],
            seconds,
            failed=failed,
            lane=self._lane.name,
            texts=len(batch),
            tokens=tokens,
            padding=padding,
            queue_seconds=max(began - request.created for request in requests),
        )


def _size(batch: Sequence[Text]) -> tuple[int, int]:
    """Count a batch's tokens, and the padding beside them."""
    lengths = [len(text.ids) for text in batch]
    return sum(lengths), len(lengths) * max(lengths) - sum(lengths)


def _niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, os.getpid())


def _sketch(text: Text, vectors: NDArray[np.float32]) -> Sketched | None:
    sketch = text.request.sketch
    return sketch(text.ids, vectors) if sketch else None
