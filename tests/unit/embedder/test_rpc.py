"""What the embedder says to requests that no adapter of ours sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from memoryd.errors import UnimplementedError
from memoryd.ports import Lane as PortLane
from memoryd.ports import TextKind
from memoryd.v1 import embedder_pb2, embedder_pb2_grpc
from services.embedder.metrics import EmbedderMetrics
from services.embedder.rpc import MAX_TEXTS, add_to
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings
from tests.support.engine import FakeEngine, token_vector_of, vector_of
from tests.support.inner import CREDENTIALS, reached
from tests.support.tiny_model import TINY

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


async def test_sketches_are_served_where_they_are_asked_for(
    stub: embedder_pb2_grpc.EmbedderServiceStub, engine: FakeEngine
) -> None:
    request = embedder_pb2.EmbedRequest(texts=["a.b", "."], kind=Kind.KIND_PASSAGE, lane=Lane.LANE_BULK, sketches=True)
    response = await stub.Embed(request, metadata=METADATA)
    letters = [ord(letter) - 0x21 + 5 for letter in "ab"]
    bits = [sum((token_vector_of(each)[place] > 0) << 7 - place for place in range(4)) for each in letters]
    assert [list(sketch) for sketch in response.sketches] == [bits, []]
    assert not response.query_tokens


async def test_the_tokens_of_a_query_are_packed(
    stub: embedder_pb2_grpc.EmbedderServiceStub, engine: FakeEngine
) -> None:
    request = embedder_pb2.EmbedRequest(texts=["ab"], kind=Kind.KIND_QUERY, lane=Lane.LANE_QUERY, sketches=True)
    (tokens,) = (await stub.Embed(request, metadata=METADATA)).query_tokens
    rows = np.stack([token_vector_of(ord(letter) - 0x21 + 5) for letter in "ab"])
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    assert np.frombuffer(tokens.vectors, "<f4").reshape(2, 4) == pytest.approx(rows / lengths)
    assert np.frombuffer(tokens.rarity, "<f4") == pytest.approx([2 + ord(letter) / 100 for letter in "ab"])


async def test_a_model_without_token_vectors_gives_no_sketches() -> None:
    engine = FakeEngine(sketches=False)
    service = EmbedderService(engine, EmbedderSettings(bulk_threads=1), metrics=EmbedderMetrics(CollectorRegistry()))
    await service.start()
    with pytest.raises(UnimplementedError, match="fake gives no token sketches"):
        await service.embed(["x"], kind=TextKind.PASSAGE, lane=PortLane.BULK, timeout=10.0, sketches=True)
    await service.close()


async def test_info(stub: embedder_pb2_grpc.EmbedderServiceStub) -> None:
    info = await stub.Info(embedder_pb2.InfoRequest(), metadata=METADATA)
    assert (info.model.name, info.model.fingerprint, info.model.window) == ("fake", "fake-1", 1000)
    assert (info.unrelated_cosine, info.related_cosine) == (0.1, 0.7)
    assert (info.max_texts, info.max_request_bytes, info.rerank, info.sketches) == (MAX_TEXTS, 4 * 2**20, False, True)
    assert [(lane.name, lane.reserved_tokens, lane.max_tokens) for lane in info.lanes] == [
        ("query", 0, 262_144),
        ("bulk", 0, 262_144),
    ]
    assert (info.query_prompt, info.passage_prompt) == (TINY.query_prompt, TINY.passage_prompt)


@pytest.mark.parametrize("texts", [8_000], ids=["batch-cap"])
async def test_more_texts_than_one_call_takes_are_refused(
    stub: embedder_pb2_grpc.EmbedderServiceStub, texts: int
) -> None:
    request = embedder_pb2.EmbedRequest(texts=["x"] * texts, kind=Kind.KIND_PASSAGE, lane=Lane.LANE_BULK)
    with pytest.raises(grpc.aio.AioRpcError, match="8000 are too many for one call; at most 256") as refused:
        await stub.Embed(request, metadata=METADATA)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
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
