"""What the embedder says to requests that no adapter of ours sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from memoryd.ports import TextKind
from memoryd.v1 import embedder_pb2, embedder_pb2_grpc
from services.embedder.metrics import EmbedderMetrics
from services.embedder.rpc import MAX_TEXTS, add_to
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings
from tests.support.engine import FakeEngine, vector_of
from tests.support.inner import CREDENTIALS, reached

Kind, Lane = embedder_pb2.EmbedRequest.Kind, embedder_pb2.EmbedRequest.Lane
METADATA = CREDENTIALS.metadata


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
async def stub(engine: FakeEngine) -> AsyncIterator[embedder_pb2_grpc.EmbedderServiceStub]:
    service = EmbedderService(engine, EmbedderSettings(bulk_threads=1), metrics=EmbedderMetrics(CollectorRegistry()))
    await service.start()
    async with reached("embedder", lambda server, known: add_to(server, service, known)) as way:
        yield embedder_pb2_grpc.EmbedderServiceStub(way.channel)
    await service.close()


async def test_vectors_are_packed_one_after_the_other(
    stub: embedder_pb2_grpc.EmbedderServiceStub, engine: FakeEngine
) -> None:
    request = embedder_pb2.EmbedRequest(texts=["ab", "c"], kind=Kind.KIND_QUERY, lane=Lane.LANE_QUERY)
    response = await stub.Embed(request, metadata=METADATA)
    ids = engine.tokenizer.ids(["ab", "c"], TextKind.QUERY)
    assert response.vectors == b"".join(vector_of(each).astype("<f4").tobytes() for each in ids)
    assert (response.fingerprint, response.dimensions, response.tokens) == ("fake-1", 4, sum(map(len, ids)))
    assert not response.sketches


async def test_info(stub: embedder_pb2_grpc.EmbedderServiceStub) -> None:
    info = await stub.Info(embedder_pb2.InfoRequest(), metadata=METADATA)
    assert (info.model.name, info.model.fingerprint, info.model.window) == ("fake", "fake-1", 1000)
    assert (info.unrelated_cosine, info.related_cosine) == (0.1, 0.7)
    assert (info.max_texts, info.max_request_bytes, info.rerank, info.sketches) == (MAX_TEXTS, 4 * 2**20, False, False)


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        pytest.param({"sketches": True}, "UNIMPLEMENTED", "sketches is not served by this version", id="sketches"),
        pytest.param(
            {"fingerprint": "other"}, "FAILED_PRECONDITION", "this embedder runs fake (fake-1)", id="fingerprint"
        ),
        pytest.param({"kind": 0}, "INVALID_ARGUMENT", "kind: 0 says nothing; it must be one of KIND_QUERY", id="kind"),
        pytest.param({"lane": 0}, "INVALID_ARGUMENT", "lane: 0 says nothing; it must be one of LANE_QUERY", id="lane"),
        pytest.param({"lane": 9}, "INVALID_ARGUMENT", "lane: 9 is not known", id="unknown lane"),
        pytest.param({"texts": ["x"] * 257}, "INVALID_ARGUMENT", "texts: 257 are too many for one call", id="many"),
        pytest.param({"texts": ["x", ""]}, "INVALID_ARGUMENT", "text 1 is blank", id="blank"),
    ],
)
async def test_a_request_that_is_refused(
    stub: embedder_pb2_grpc.EmbedderServiceStub,
    engine: FakeEngine,
    fields: dict[str, Any],
    code: str,
    message: str,
) -> None:
    engine.batches.clear()
    request = embedder_pb2.EmbedRequest(
        **{"texts": ["x"], "kind": Kind.KIND_PASSAGE, "lane": Lane.LANE_BULK, "fingerprint": "fake-1", **fields}
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Embed(request, metadata=METADATA)
    assert caught.value.code().name == code
    assert (caught.value.details() or "").startswith(message)
    assert engine.batches == []


async def test_rerank_without_a_cross_encoder(stub: embedder_pb2_grpc.EmbedderServiceStub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Rerank(embedder_pb2.RerankRequest(query="x", texts=["y"]), metadata=METADATA)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_tokenizer_of_another_model(stub: embedder_pb2_grpc.EmbedderServiceStub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in stub.Tokenizer(embedder_pb2.TokenizerRequest(fingerprint="other"), metadata=METADATA):
            pass
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_every_method_wants_the_credential(stub: embedder_pb2_grpc.EmbedderServiceStub) -> None:
    calls: list[Any] = [
        stub.Embed(embedder_pb2.EmbedRequest()),
        stub.Rerank(embedder_pb2.RerankRequest()),
        stub.Info(embedder_pb2.InfoRequest()),
        anext(aiter(stub.Tokenizer(embedder_pb2.TokenizerRequest()))),
    ]
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
