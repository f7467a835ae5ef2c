"""The embedder over gRPC."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np

from memoryd.adapters.grpc.asking import Ask, joined
from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.unanswered import Unanswered
from memoryd.domain.queries import ModelInfo
from memoryd.errors import DeadlineExceededError, InvalidInputError, UnavailableError
from memoryd.models.parts import Limits, of_part
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import Embeddings, Lane, StreamingEmbedder, TextKind, Tokenizer
from memoryd.v1 import embedder_pb2, embedder_pb2_grpc
from memoryd.wire.models import model_from
from memoryd.wire.scoring import scoring_from

_PART_BYTES = 2**15  # of a stream: about 8,000 tokens, so that answers come steadily
_UNANSWERED = 8  # parts of a stream: as many again as a server works on
_PAUSE = 0.5  # seconds, at most, before another replica is asked
_JITTER = random.SystemRandom()


class GrpcEmbedder(StreamingEmbedder):
    """A client of `EmbedderService`.

    Bound to a model, it describes that one without asking, and raises PreconditionFailedError where the service runs
    another one. Not bound, it takes whatever model is served, and `info` asks each time.
    """

    def __init__(self, remote: Remote, model: ModelInfo | None = None, limits: Limits | None = None) -> None:
        self._remote, self._model, self._limits = remote, model, limits
        self._stub = embedder_pb2_grpc.EmbedderServiceStub(remote.channel)
        self._tokenizer: tuple[str, Tokenizer] | None = None
        self._loading = asyncio.Lock()

    async def bound(self) -> GrpcEmbedder:
        """Ask which model is served, and bind to it: what a process does at its start, which indexes or searches."""
        model = await self.info()
        return GrpcEmbedder(self._remote, model, self._limits)

    @property
    def _fingerprint(self) -> str:
        return self._model.fingerprint if self._model else ""

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return self._model or _model(await self._ask())

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer; it is fetched once."""
        fingerprint = (await self.info()).fingerprint
        async with self._loading:
            if self._tokenizer is None or self._tokenizer[0] != fingerprint:
                self._tokenizer = fingerprint, await self._load(fingerprint)
            return self._tokenizer[1]

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
        """Embed texts within `timeout` seconds: in one call, or in a stream where they are more than one call takes."""
        if not texts:
            return Embeddings(np.empty((0, (await self.info()).dimensions), np.float32), 0)
        end = time.monotonic() + timeout
        parts = list((await self._known_limits(timeout)).parts(texts))
        if len(parts) > 1:
            return await self._embed_parts(
                texts, end, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant
            )
        ask = Ask(self._fingerprint, kind, lane, sketches, tenant)
        response = await self._remote.call(self._stub.Embed, ask.request(texts), end - time.monotonic())
        with self._remote.reading():
            return ask.read(response, len(texts))

    async def embed_stream(
        self,
        texts: Iterable[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> AsyncGenerator[Embeddings]:
        """Embed any number of texts; see the port. What a replica leaves unanswered goes to the next one."""
        ask = Ask(self._fingerprint, kind, lane, sketches, tenant)
        unanswered = Unanswered((await self._known_limits(timeout)).parts(texts, target=_PART_BYTES), _UNANSWERED)
        attempts = self._remote.settings.attempts
        while True:
            try:
                async for answer in self._exchange(ask, unanswered, timeout):
                    attempts = self._remote.settings.attempts
                    yield answer
            except InvalidInputError as error:
                raise of_part(error, unanswered.first_of(error)) from error
            except UnavailableError:
                attempts -= 1
                if not attempts:
                    raise
                await asyncio.sleep(_PAUSE * _JITTER.uniform(0.5, 1.0))
            else:
                break
        if unanswered.error:
            raise unanswered.error

    async def _exchange(self, ask: Ask, unanswered: Unanswered, timeout: float) -> AsyncGenerator[Embeddings]:
        """Ask for what is not answered, in one stream."""

        async def requests() -> AsyncIterator[embedder_pb2.EmbedStreamRequest]:
            async for part in unanswered.send():
                yield embedder_pb2.EmbedStreamRequest(part=ask.request(part))

        async with aclosing(self._remote.exchange(self._stub.EmbedStream, requests(), timeout)) as responses:
            async for response in responses:
                with self._remote.reading():
                    answer = ask.read(response.part, unanswered.oldest)
                unanswered.answered()
                yield answer
        if unanswered:
            raise UnavailableError(f"{self._remote.where} left texts out: see its log")

    async def _embed_parts(self, texts: Sequence[str], end: float, **asked: Any) -> Embeddings:  # noqa: ANN401  (as above)
        """Embed in a stream; `end` is on the clock of time.monotonic."""
        try:
            async with asyncio.timeout(end - time.monotonic()), aclosing(self.embed_stream(texts, **asked)) as answers:
                return joined([answer async for answer in answers])
        except TimeoutError:
            raise DeadlineExceededError(f"{len(texts)} texts were not embedded in time") from None

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query within `timeout` seconds, in as many calls as necessary."""
        end = time.monotonic() + timeout
        limits = await self._known_limits(timeout)
        scores: list[float] = []
        for _, part in limits.parts(texts, query):
            request = embedder_pb2.RerankRequest(query=query, texts=part)
            try:
                response = await self._remote.call(self._stub.Rerank, request, end - time.monotonic())
            except DeadlineExceededError:
                if not scores:
                    raise
                return scores + [math.nan] * (len(texts) - len(scores))
            if len(response.scores) != len(part):
                raise UnavailableError(f"{self._remote.where} left scores out: see its log")
            scores += response.scores
        return scores

    async def _ask(self, timeout: float | None = None) -> embedder_pb2.InfoResponse:
        response = await self._remote.call(self._stub.Info, embedder_pb2.InfoRequest(), timeout)
        with self._remote.reading():
            self._limits = _limits(response)
        return response

    async def _known_limits(self, timeout: float) -> Limits:
        return self._limits or _limits(await self._ask(timeout))

    async def _load(self, fingerprint: str) -> Tokenizer:
        request = embedder_pb2.TokenizerRequest(fingerprint=fingerprint)
        parts = await self._remote.collect(self._stub.Tokenizer, request, self._remote.settings.load_timeout)
        with self._remote.reading():
            file = b"".join(part.part for part in parts)
            prompts = parts[0] if parts else embedder_pb2.TokenizerResponse()
            return await asyncio.to_thread(ModelTokenizer.parse, file, prompts.query_prompt, prompts.passage_prompt)


def _model(response: embedder_pb2.InfoResponse) -> ModelInfo:
    return model_from(
        response.model,
        response.unrelated_cosine,
        response.related_cosine,
        sketches=response.sketches,
        reranks=response.rerank,
        scoring=scoring_from(response.scoring) if response.HasField("scoring") else None,
    )


def _limits(response: embedder_pb2.InfoResponse) -> Limits:
    return Limits(response.max_texts, response.max_request_bytes)
