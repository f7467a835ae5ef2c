"""The Embedder port on a remote provider."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.queries import ModelInfo
from memoryd.domain.scoring import Scoring
from memoryd.errors import (
    DeadlineExceededError,
    InvalidInputError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import Embeddings, Lane, TextKind
from services.embedder.remote.api import EmbeddingsApi, TextsRefusedError
from services.embedder.remote.retries import retried
from services.embedder.remote.settings import OpenAISettings
from services.embedder.served import LaneStatus
from services.embedder.stream import Streaming

_PROBE = "ready"


class RemoteEmbedder(Streaming):
    """Texts go to the provider in requests of bounded size; queries don't wait for those of bulk. `start` it first."""

    def __init__(self, settings: OpenAISettings, tokenizer: ModelTokenizer, queue_tokens: int) -> None:
        """Take the settings, what counts tokens, and how many may wait in a lane."""
        self._settings, self._tokenizer, self._queue_tokens = settings, tokenizer, queue_tokens
        self._api = EmbeddingsApi(settings)
        self._room = {lane: asyncio.Semaphore(settings.concurrency) for lane in Lane}
        self._reserved = dict.fromkeys(Lane, 0)
        self._info: ModelInfo | None = None
        self.scoring: Scoring | None = None  # read for a model, so known only once that has been asked

    async def start(self, timeout: float) -> None:
        """Embed a first text. Raises UnavailableError, ResourceExhaustedError, DeadlineExceededError."""
        (vector,) = await self._send([_PROBE], Lane.QUERY, time.monotonic() + timeout)
        settings = self._settings
        about = [settings.model, len(vector), settings.query_prompt, settings.passage_prompt]
        self._info = ModelInfo(
            name=settings.model,
            fingerprint=hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32],
            dimensions=len(vector),
            window=settings.window,
            unrelated=settings.unrelated,
            related=settings.related,
            engine="openai",
            provider=settings.host,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def info(self) -> ModelInfo:
        """Describe the model."""
        if self._info is None:
            raise UnavailableError("the remote model has not been asked yet")
        return replace(self._info, scoring=self.scoring)

    def lanes(self) -> Sequence[LaneStatus]:
        """Tell how much waits for the provider."""
        return [LaneStatus(lane, reserved, self._queue_tokens, 0.0) for lane, reserved in self._reserved.items()]

    async def tokenizer(self) -> ModelTokenizer:
        """Give what counts tokens and weighs words."""
        return self._tokenizer

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",  # noqa: ARG002  (the provider serves who comes first)
    ) -> Embeddings:
        """Embed texts within `timeout` seconds; see the port for its errors."""
        info = await self.info()
        if sketches:
            raise UnimplementedError(f"{info.name} gives no token sketches: leave them out", field="sketches")
        if not texts:
            return Embeddings(np.empty((0, info.dimensions), np.float32), 0)
        end = time.monotonic() + timeout
        lengths = [len(ids) for ids in await asyncio.to_thread(self._tokenizer.ids, texts, kind)]
        for index, length in enumerate(lengths):
            if length > info.window:
                raise InvalidInputError(
                    f"text {index} has {length} tokens with its prompt, the model's window is {info.window}: split it",
                    index=str(index),
                )
        tokens = sum(lengths)
        self._reserve(lane, tokens)
        try:
            async with asyncio.timeout(timeout):
                prompt = self._tokenizer.prompt(kind)
                vectors = await self._in_parts([prompt + text for text in texts], lengths, lane, end)
        except TimeoutError:
            raise DeadlineExceededError(f"{len(texts)} texts were not embedded within {timeout:.3g} s") from None
        finally:
            self._reserved[lane] -= tokens
        if vectors.shape[1] != info.dimensions:
            raise UnavailableError(
                f"{self._settings.host} now answers with {vectors.shape[1]} dimensions, not {info.dimensions}: it has "
                "another model under the same name; restart the embedder to build a new generation with it"
            )
        return Embeddings(vectors, tokens)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:  # noqa: ARG002  (port)
        """Raise UnimplementedError."""
        raise UnimplementedError("a remote embedding provider has no cross-encoder: rerank without one")

    def _reserve(self, lane: Lane, tokens: int) -> None:
        if self._reserved[lane] and self._reserved[lane] + tokens > self._queue_tokens:
            raise ResourceExhaustedError(
                f"{self._reserved[lane]} tokens wait for {self._settings.host}: try again later", retry_after=1.0
            )
        self._reserved[lane] += tokens

    async def _in_parts(
        self, texts: Sequence[str], lengths: Sequence[int], lane: Lane, end: float
    ) -> NDArray[np.float32]:
        """Embed parts side by side; the first error ends the others."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._part(texts, first, after, lane, end)) for first, after in self._cut(lengths)
                ]
        except* Exception as errors:  # noqa: BLE001  (one of the parts' errors stands for all)
            raise _first(errors) from None
        return np.concatenate([task.result() for task in tasks])

    def _cut(self, lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
        first, tokens = 0, 0
        for index, length in enumerate(lengths):
            full = index - first == self._settings.request_texts or tokens + length > self._settings.request_tokens
            if index > first and full:
                yield first, index
                first, tokens = index, 0
            tokens += length
        yield first, len(lengths)

    async def _part(self, texts: Sequence[str], first: int, after: int, lane: Lane, end: float) -> NDArray[np.float32]:
        """Embed texts[first:after]; where the provider refuses them, halves, down to the text that is to blame."""
        try:
            return await self._send(texts[first:after], lane, end)
        except TextsRefusedError:
            if after - first > 1:
                middle = (first + after) // 2
                halves = [await self._part(texts, *half, lane, end) for half in ((first, middle), (middle, after))]
                return np.concatenate(halves)
        await self._send_probe(lane, end)
        raise InvalidInputError(
            f"text {first} is refused by {self._settings.host}: leave it out or change it", index=str(first)
        )

    async def _send_probe(self, lane: Lane, end: float) -> None:
        """Tell a text that is refused from a provider that refuses all."""
        await self._send([_PROBE], lane, end)

    async def _send(self, texts: Sequence[str], lane: Lane, end: float) -> NDArray[np.float32]:
        async def send() -> NDArray[np.float32]:
            async with self._room[lane]:
                return await self._api.embed(texts)

        try:
            return await retried(send, self._settings.attempts, end)
        except TextsRefusedError:
            if list(texts) != [_PROBE]:
                raise
            raise UnavailableError(
                f"{self._settings.host} refuses every text: check MEMORYD_EMBEDDER_OPENAI_MODEL and …_DIMENSIONS"
            ) from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
