"""EmbedderService: proto ↔ use case, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from memoryd.errors import InvalidInputError, MemorydError, PreconditionFailedError
from memoryd.ports import Embeddings, Lane, TextKind
from memoryd.server.calls import current
from memoryd.server.interceptor import Authenticate
from memoryd.server.lifecycle import Server
from memoryd.v1 import embedder_pb2, embedder_pb2_grpc
from memoryd.wire.enums import required
from memoryd.wire.models import model_to
from memoryd.wire.scoring import scoring_to
from services.embedder.served import ServedEmbedder
from services.embedder.stream import AHEAD, in_order, patiently

SERVICE = embedder_pb2.DESCRIPTOR.services_by_name["EmbedderService"].full_name
MAX_TEXTS = 256
_ANSWER_SECONDS = 0.05  # what scores need to arrive: later ones are no use
_PART = 2**20  # bytes of the tokenizer's file in one message

_Context = grpc.aio.ServicerContext[Any, Any]


def add_to(server: Server, service: ServedEmbedder, authenticate: Authenticate) -> None:
    """Serve the embedder to the holders of the service credential."""
    servicer = EmbedderServicer(service, server.max_message_bytes)
    server.add(SERVICE, partial(embedder_pb2_grpc.add_EmbedderServiceServicer_to_server, servicer), authenticate)


class EmbedderServicer(embedder_pb2_grpc.EmbedderServiceServicer):
    """The embedder's use cases as gRPC."""

    def __init__(self, service: ServedEmbedder, max_request_bytes: int) -> None:
        """Take the use cases."""
        self._service = service
        self._max_request_bytes = max_request_bytes

    async def Embed(self, request: embedder_pb2.EmbedRequest, context: _Context) -> embedder_pb2.EmbedResponse:
        """Embed texts."""
        response = await self._embed(request, current().left)
        lane = embedder_pb2.EmbedRequest.Lane.Name(request.lane)
        current().facts |= {"lane": lane, "texts": len(request.texts), "tokens": response.tokens}
        return response

    async def EmbedStream(
        self, request_iterator: AsyncIterator[embedder_pb2.EmbedStreamRequest], context: _Context
    ) -> AsyncIterator[embedder_pb2.EmbedStreamResponse]:
        """Embed any number of texts."""
        facts: dict[str, int] = {"requests": 0, "texts": 0, "tokens": 0}
        current().facts |= facts

        async def numbered() -> AsyncIterator[tuple[int, embedder_pb2.EmbedRequest]]:
            number = 0
            async for request in request_iterator:
                yield number, request.part
                number += 1

        async def work(part: tuple[int, embedder_pb2.EmbedRequest]) -> tuple[int, embedder_pb2.EmbedResponse]:
            number, request = part
            try:
                return len(request.texts), await self._embed(request, current().left, patient=True)
            except MemorydError as error:
                error.details["request"] = str(number)
                raise

        async with aclosing(in_order(numbered(), work, AHEAD)) as responses:
            async for texts, response in responses:
                facts["requests"] += 1
                facts["texts"] += texts
                facts["tokens"] += response.tokens
                current().facts |= facts
                yield embedder_pb2.EmbedStreamResponse(part=response)

    async def _embed(
        self, request: embedder_pb2.EmbedRequest, timeout: float, *, patient: bool = False
    ) -> embedder_pb2.EmbedResponse:
        kind = required("kind", request.kind, embedder_pb2.EmbedRequest.Kind.DESCRIPTOR, TextKind)
        lane = required("lane", request.lane, embedder_pb2.EmbedRequest.Lane.DESCRIPTOR, Lane)
        await self._check_model(request.fingerprint)
        _check_count(request.texts)

        def embed(left: float) -> Awaitable[Embeddings]:
            return self._service.embed(
                request.texts, kind=kind, lane=lane, timeout=left, sketches=request.sketches, tenant=request.tenant
            )

        embeddings = await (patiently(embed, timeout) if patient else embed(timeout))
        model = await self._service.info()
        return embedder_pb2.EmbedResponse(
            fingerprint=model.fingerprint,
            dimensions=model.dimensions,
            vectors=_packed(embeddings.vectors),
            tokens=embeddings.tokens,
            sketches=embeddings.sketches,
            query_tokens=[
                embedder_pb2.QueryTokens(vectors=_packed(each.vectors), rarity=_packed(each.rarity))
                for each in embeddings.query_tokens
            ],
        )

    async def Rerank(self, request: embedder_pb2.RerankRequest, context: _Context) -> embedder_pb2.RerankResponse:
        """Score texts against a query."""
        _check_count(request.texts)
        scores = await self._service.rerank(request.query, request.texts, timeout=current().within(_ANSWER_SECONDS))
        current().facts["texts"] = len(request.texts)
        return embedder_pb2.RerankResponse(scores=scores)

    async def Info(self, request: embedder_pb2.InfoRequest, context: _Context) -> embedder_pb2.InfoResponse:
        """Describe the model."""
        model, tokenizer = await self._service.info(), await self._service.tokenizer()
        return embedder_pb2.InfoResponse(
            model=model_to(model),
            unrelated_cosine=model.unrelated,
            related_cosine=model.related,
            max_texts=MAX_TEXTS,
            rerank=model.reranks,
            sketches=model.sketches,
            max_request_bytes=self._max_request_bytes,
            lanes=[
                embedder_pb2.LaneStatus(
                    name=lane.name, reserved_tokens=lane.reserved, max_tokens=lane.limit, tokens_per_second=lane.pace
                )
                for lane in self._service.lanes()
            ],
            query_prompt=tokenizer.prompt(TextKind.QUERY),
            passage_prompt=tokenizer.prompt(TextKind.PASSAGE),
            scoring=scoring_to(model.scoring) if model.scoring else None,
        )

    async def Tokenizer(
        self, request: embedder_pb2.TokenizerRequest, context: _Context
    ) -> AsyncIterator[embedder_pb2.TokenizerResponse]:
        """Give the tokenizer."""
        await self._check_model(request.fingerprint)
        tokenizer = await self._service.tokenizer()
        file = await asyncio.to_thread(tokenizer.dump)
        current().facts["bytes"] = len(file)
        yield embedder_pb2.TokenizerResponse(
            query_prompt=tokenizer.prompt(TextKind.QUERY), passage_prompt=tokenizer.prompt(TextKind.PASSAGE)
        )
        for first in range(0, len(file), _PART):
            yield embedder_pb2.TokenizerResponse(part=file[first : first + _PART])

    async def _check_model(self, fingerprint: str) -> None:
        model = await self._service.info()
        if fingerprint not in {"", model.fingerprint}:
            raise PreconditionFailedError(
                f"this embedder runs {model.name} ({model.fingerprint}), the caller expects {fingerprint}: give both "
                "the same model, or restart the caller to index with the new one",
                reason="OTHER_MODEL",
                fingerprint=model.fingerprint,
            )


def _packed(numbers: NDArray[np.floating]) -> bytes:
    return np.ascontiguousarray(numbers, "<f4").tobytes()


def _check_count(texts: Sequence[str]) -> None:
    if len(texts) > MAX_TEXTS:
        raise InvalidInputError(f"texts: {len(texts)} are too many for one call; at most {MAX_TEXTS}", field="texts")
