"""The embedder over gRPC."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.adapters.grpc.parts import Limits
from memoryd.adapters.grpc.remote import Remote
from memoryd.domain.queries import ModelInfo
from memoryd.domain.sketches import QueryTokens
from memoryd.errors import InvalidInputError, UnavailableError
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer
from memoryd.v1 import embedder_pb2, embedder_pb2_grpc
from memoryd.wire.enums import number
from memoryd.wire.models import model_from

_KIND = embedder_pb2.EmbedRequest.Kind.DESCRIPTOR
_LANE = embedder_pb2.EmbedRequest.Lane.DESCRIPTOR


class GrpcEmbedder(Embedder):
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
        self, texts: Sequence[str], *, kind: TextKind, lane: Lane, timeout: float, sketches: bool = False
    ) -> Embeddings:
        """Embed texts within `timeout` seconds, in as many calls as the service's limits make necessary."""
        if not texts:
            return Embeddings(np.empty((0, (await self.info()).dimensions), np.float32), 0)
        end = time.monotonic() + timeout
        limits = await self._known_limits(timeout)
        fingerprint = self._model.fingerprint if self._model else ""
        vectors: list[NDArray[np.float32]] = []
        packed: list[bytes] = []
        query_tokens: list[QueryTokens] = []
        tokens = 0
        for first, part in limits.parts(texts):
            request = embedder_pb2.EmbedRequest(
                fingerprint=fingerprint,
                texts=part,
                kind=number(kind, _KIND),
                lane=number(lane, _LANE),
                sketches=sketches,
            )
            try:
                response = await self._remote.call(self._stub.Embed, request, end - time.monotonic())
            except InvalidInputError as error:
                raise _of_part(error, first) from error
            fingerprint = response.fingerprint  # of the next parts, too: two models' vectors are never mixed
            with self._remote.reading():
                vectors.append(_vectors(response, len(part)))
                if sketches:
                    packed += _sketches(response, len(part)) if kind is TextKind.PASSAGE else ()
                    query_tokens += _query_tokens(response, len(part)) if kind is TextKind.QUERY else ()
            tokens += response.tokens
        return Embeddings(np.concatenate(vectors), tokens, tuple(packed), tuple(query_tokens))

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query within `timeout` seconds, in as many calls as necessary."""
        end = time.monotonic() + timeout
        limits = await self._known_limits(timeout)
        scores: list[float] = []
        for _, part in limits.parts(texts, query):
            request = embedder_pb2.RerankRequest(query=query, texts=part)
            response = await self._remote.call(self._stub.Rerank, request, end - time.monotonic())
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
    )


def _limits(response: embedder_pb2.InfoResponse) -> Limits:
    return Limits(response.max_texts, response.max_request_bytes)


def _vectors(response: embedder_pb2.EmbedResponse, texts: int) -> NDArray[np.float32]:
    """Read vectors, shape (texts, dimensions). Raises ValueError where there are more or fewer."""
    return np.frombuffer(response.vectors, "<f4").astype(np.float32).reshape(texts, response.dimensions)


def _sketches(response: embedder_pb2.EmbedResponse, texts: int) -> Sequence[bytes]:
    """Read sketches. Raises ValueError where there are more or fewer, or one is not of whole tokens."""
    width = -(-response.dimensions // 8)
    if len(response.sketches) != texts or any(len(sketch) % width for sketch in response.sketches):
        raise ValueError(f"no {texts} sketches of {response.dimensions} dimensions")
    return response.sketches


def _query_tokens(response: embedder_pb2.EmbedResponse, texts: int) -> list[QueryTokens]:
    """Read queries' tokens. Raises ValueError where there are more or fewer, or their numbers don't fit together."""
    if len(response.query_tokens) != texts:
        raise ValueError(f"tokens of {len(response.query_tokens)} queries instead of {texts}")
    found = []
    for each in response.query_tokens:
        rarity = np.frombuffer(each.rarity, "<f4").astype(np.float64)
        vectors = np.frombuffer(each.vectors, "<f4").astype(np.float32)
        found.append(QueryTokens(vectors.reshape(len(rarity), response.dimensions), rarity))
    return found


def _of_part(error: InvalidInputError, first: int) -> InvalidInputError:
    """Name the text by its place among all."""
    index = error.details.get("index", "")
    if not first or not index.isdecimal():
        return error
    whole = InvalidInputError(f"in the part that begins with text {first}: {error}", reason=error.reason)
    whole.details.update(error.details | {"index": str(first + int(index))})
    return whole
