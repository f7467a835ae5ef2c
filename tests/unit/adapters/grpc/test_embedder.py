"""The embedder over gRPC: what the contract suite, on the real model, can't make happen."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.remote import Remote
from memoryd.errors import DeadlineExceededError, InvalidInputError, PreconditionFailedError, UnavailableError
from memoryd.ports import Embeddings, Lane, TextKind
from memoryd.v1 import embedder_pb2, embedder_pb2_grpc
from services.embedder.metrics import EmbedderMetrics
from services.embedder.rpc import SERVICE, add_to
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings
from tests.support.collect import collect
from tests.support.engine import DIMENSIONS, FakeEngine, vector_of
from tests.support.inner import LOCAL, reached, remote, serving
from tests.support.reranker import Lengths

SETTINGS = EmbedderSettings(bulk_threads=1, rerank_batch_tokens=4096)


@asynccontextmanager
async def embedding(
    engine: FakeEngine, reranker: Lengths | None = None, settings: EmbedderSettings = SETTINGS
) -> AsyncIterator[EmbedderService]:
    """Run the use cases on an engine."""
    service = EmbedderService(
        engine,
        settings,
        reranker=reranker,
        metrics=EmbedderMetrics(CollectorRegistry()),
    )
    try:
        await service.start()
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def embedder_at(
    engine: FakeEngine, reranker: Lengths | None = None, settings: EmbedderSettings = SETTINGS
) -> AsyncIterator[GrpcEmbedder]:
    """Reach an embedder that is not bound to its model."""
    async with (
        embedding(engine, reranker, settings) as service,
        reached("embedder", lambda server, known: add_to(server, service, known)) as way,
    ):
        yield GrpcEmbedder(way)


async def embed(embedder: GrpcEmbedder, texts: Sequence[str], timeout: float = 60.0) -> Embeddings:
    return await embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=timeout)


def stream(embedder: GrpcEmbedder, texts: Iterable[str], timeout: float = 60.0) -> AsyncGenerator[Embeddings]:
    return embedder.embed_stream(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=timeout)


async def test_more_texts_than_one_call_may_carry() -> None:
    engine = FakeEngine()
    texts = ["ab" * (1 + number % 7) + chr(0x41 + number % 26) for number in range(600)]
    async with embedder_at(engine) as embedder:
        embeddings = await embed(embedder, texts)
        tokens = (await embedder.tokenizer()).count(texts)
    expected = np.stack([vector_of(ids) for ids in engine.tokenizer.ids(texts, TextKind.PASSAGE)])
    assert np.array_equal(embeddings.vectors, expected)
    assert embeddings.vectors.dtype == np.float32
    assert embeddings.vectors.flags.writeable
    assert embeddings.tokens == sum(tokens)


def vectors_of(engine: FakeEngine, texts: Sequence[str]) -> Any:  # noqa: ANN401  (an array)
    return np.stack([vector_of(ids) for ids in engine.tokenizer.ids(texts, TextKind.PASSAGE)])


@pytest.mark.parametrize("texts", [8_000], ids=["batch-cap"])
async def test_a_stream_of_many_texts_comes_in_parts_and_in_order(texts: int) -> None:
    engine = FakeEngine()
    numbered = [f"text number {number}" for number in range(texts)]
    async with embedder_at(engine) as embedder:
        whole = await embed(embedder, numbered)
        parts = [part async for part in stream(embedder, numbered)]
    assert len(parts) > 30
    assert np.array_equal(whole.vectors, vectors_of(engine, numbered))
    assert np.array_equal(np.concatenate([part.vectors for part in parts]), whole.vectors)
    assert sum(part.tokens for part in parts) == whole.tokens


async def test_a_stream_asks_for_texts_only_as_they_are_needed() -> None:
    given = 0

    def endless() -> Iterator[str]:
        nonlocal given
        while True:
            given += 1
            yield "x" * 900

    async with embedder_at(FakeEngine()) as embedder, aclosing(stream(embedder, endless())) as parts:
        taken = sum([len((await anext(parts)).vectors) for _ in range(20)])
        assert taken <= given <= taken + 12 * 37  # 36 texts fill a part


async def test_a_stream_of_nothing_has_no_answers() -> None:
    async with embedder_at(FakeEngine()) as embedder:
        assert [part async for part in stream(embedder, [])] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [(" ", "begins with text 256: text 44 is blank"), ("\ud800", "text 300 is not Unicode")],
    ids=["blank", "surrogate"],
)
async def test_what_a_stream_refuses_is_named_after_the_answers_before_it(text: str, message: str) -> None:
    texts = ["x"] * 600
    texts[300] = text
    parts: list[Embeddings] = []
    async with embedder_at(FakeEngine()) as embedder:
        with pytest.raises(InvalidInputError, match=message) as caught:
            await collect(stream(embedder, texts), parts)
    assert [len(part.vectors) for part in parts] == [256]
    assert caught.value.details["index"] == "300"


async def test_a_stream_waits_for_a_full_queue() -> None:
    engine = FakeEngine()
    settings = EmbedderSettings(bulk_threads=1, queue_tokens=9_000)
    async with embedder_at(engine, settings=settings) as embedder:
        texts = ["x" * 900] * 200
        parts = [part async for part in stream(embedder, texts)]
    assert sum(len(part.vectors) for part in parts) == 200


async def test_another_replica_is_asked_for_what_one_left_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.adapters.grpc.embedder._PAUSE", 0.001)
    texts = ["x" * (1 + number % 50) for number in range(2_000)]
    servicer = Breaking(after=3)
    async with reached_raw(servicer) as way:
        parts = [part async for part in stream(GrpcEmbedder(way), texts)]
        assert [int(vector[0]) for part in parts for vector in part.vectors] == [len(text) for text in texts]
        assert servicer.streams == 3
        servicer.after = 0
        with pytest.raises(UnavailableError, match="breaks off"):
            await embed(GrpcEmbedder(way), texts)


async def test_a_stream_that_ends_early_is_not_taken_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.adapters.grpc.embedder._PAUSE", 0.001)
    async with reached_raw(Breaking(after=0, politely=True)) as way:
        with pytest.raises(UnavailableError):  # whether gRPC or the count of answers finds out first
            await embed(GrpcEmbedder(way), ["x"] * 2_000)


async def test_a_stream_without_an_answer_in_time_ends() -> None:
    engine = FakeEngine()
    async with embedder_at(engine) as embedder:
        await embed(embedder, ["x"])
        engine.open.clear()
        try:
            with pytest.raises(DeadlineExceededError, match=r"gave no answer for 0\.2 s"):
                _ = [part async for part in stream(embedder, ["x"], timeout=0.2)]
        finally:
            engine.open.set()


async def test_texts_that_are_larger_than_one_request() -> None:
    settings = LOCAL.model_copy(update={"max_message_bytes": 4096})
    texts = ["x" * 900] * 12
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(embedding(FakeEngine()))
        server = await stack.enter_async_context(
            serving(lambda server, known: add_to(server, service, known), settings)
        )
        embedder = GrpcEmbedder(await stack.enter_async_context(remote("embedder", [server.address])))
        assert (await embed(embedder, texts)).vectors.shape == (12, DIMENSIONS)
        with pytest.raises(InvalidInputError, match="text 1 has 5008 bytes: no model reads that much"):
            await embed(embedder, ["x", "x" * 5000])


async def test_a_text_that_is_refused_is_named_by_its_place_among_all() -> None:
    async with embedder_at(FakeEngine()) as embedder:
        texts = ["x"] * 300
        texts[299] = " "
        with pytest.raises(
            InvalidInputError, match="in the part that begins with text 256: text 43 is blank"
        ) as caught:
            await embed(embedder, texts)
    assert caught.value.details["index"] == "299"


async def test_rerank() -> None:
    reranker = Lengths()
    texts = ["x" * (1 + number % 50) for number in range(300)]
    async with embedder_at(FakeEngine(), reranker) as embedder:
        scores = await embedder.rerank("query", texts, timeout=60.0)
        assert await embedder.rerank("query", [], timeout=60.0) == []
    assert list(scores) == [len(text) / 1024 for text in texts]
    assert sum(map(len, reranker.batches[1:])) == 300  # the first one warms it up


async def test_scores_that_come_in_time_are_kept() -> None:
    reranker = Lengths()
    reranker.gates = 3  # one warms it up
    texts = ["x" * (1 + number % 50) for number in range(300)]  # two calls
    try:
        async with embedder_at(FakeEngine(), reranker) as embedder:
            scores = await embedder.rerank("query", texts, timeout=2.0)
            reranker.open.set()
    finally:
        reranker.open.set()
    assert len(scores) == 300
    known = [not np.isnan(score) for score in scores]
    assert any(known)
    assert not all(known)


async def test_another_model_behind_the_address_is_refused() -> None:
    before, after = FakeEngine(), FakeEngine()
    after.info = before.info.__class__("other", "fake-2", DIMENSIONS, 1000, 0.1, 0.7, "fake")
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(embedding(before))
        server = await stack.enter_async_context(serving(lambda server, known: add_to(server, service, known)))
        unbound = GrpcEmbedder(await stack.enter_async_context(remote("embedder", [server.address])))
        bound = await unbound.bound()
        assert await bound.info() == await unbound.info() == before.info
        assert (await embed(bound, ["x"])).vectors.shape == (1, DIMENSIONS)
        service._engine = after  # noqa: SLF001  (a deployment that changes the model does this to its callers)
        with pytest.raises(
            PreconditionFailedError, match=r"runs other \(fake-2\), the caller expects fake-1"
        ) as caught:
            await embed(bound, ["x"])
        assert (caught.value.reason, caught.value.details["fingerprint"]) == ("OTHER_MODEL", "fake-2")
        with pytest.raises(PreconditionFailedError):
            await bound.tokenizer()
        assert await bound.info() == before.info
        assert await unbound.info() == after.info
        assert (await embed(unbound, ["x"])).vectors.shape == (1, DIMENSIONS)


async def test_the_tokenizer_is_fetched_once_a_model() -> None:
    engine = FakeEngine()
    async with embedder_at(engine) as embedder:
        tokenizer = await embedder.tokenizer()
        assert await embedder.tokenizer() is tokenizer
    texts = ["abc", "", "a b\ud800", "日本"]
    assert tokenizer.count(texts) == engine.tokenizer.count(texts)
    assert tokenizer.weights(["abc", "é"]) == pytest.approx(engine.tokenizer.weights(["abc", "é"]))


async def test_a_model_that_has_been_seen_is_known_without_asking() -> None:
    async with embedder_at(FakeEngine()) as unbound:
        bound = await unbound.bound()
        await bound.tokenizer()
    assert (await bound.info()).fingerprint == "fake-1"
    assert (await bound.tokenizer()).count(["a"]) > [0]


async def test_no_time_left() -> None:
    async with embedder_at(FakeEngine()) as embedder:
        with pytest.raises(DeadlineExceededError):
            await embed(embedder, ["x"], timeout=0.0)


class Answers(embedder_pb2_grpc.EmbedderServiceServicer):
    """Answers every Embed call alike."""

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401  (a message's)
        self._response = embedder_pb2.EmbedResponse(**{"dimensions": DIMENSIONS} | fields)

    async def Info(self, request: object, context: object) -> embedder_pb2.InfoResponse:  # noqa: N802  (proto)
        return embedder_pb2.InfoResponse(max_texts=10, max_request_bytes=10_000)

    async def Embed(self, request: object, context: object) -> embedder_pb2.EmbedResponse:  # noqa: N802  (proto)
        return self._response

    def EmbedStream(self, request_iterator: Any, context: Any) -> AsyncIterator[embedder_pb2.EmbedStreamResponse]:  # noqa: ANN401, N802  (proto)
        raise NotImplementedError

    async def Rerank(self, request: object, context: object) -> embedder_pb2.RerankResponse:  # noqa: N802  (proto)
        raise NotImplementedError

    def Tokenizer(self, request: object, context: object) -> AsyncIterator[embedder_pb2.TokenizerResponse]:  # noqa: N802  (proto)
        raise NotImplementedError


class Breaking(Answers):
    """Gives texts their length as vector; each of its first two streams breaks off after some answers."""

    def __init__(self, after: int, *, politely: bool = False) -> None:
        super().__init__()
        self.after, self.politely, self.streams = after, politely, 0

    async def EmbedStream(self, request_iterator: Any, context: Any) -> AsyncIterator[embedder_pb2.EmbedStreamResponse]:  # noqa: ANN401, N802  (proto)
        self.streams += 1
        answered = 0
        async for request in request_iterator:
            if answered >= self.after and (self.streams < 3 or not self.after):
                if self.politely:
                    return
                raise UnavailableError("it breaks off")
            answered += 1
            lengths = np.array([len(text) for text in request.part.texts], "<f4")
            answer = embedder_pb2.EmbedResponse(dimensions=1, vectors=lengths.tobytes(), tokens=len(lengths))
            yield embedder_pb2.EmbedStreamResponse(part=answer)


@pytest.mark.parametrize("size", [0, 12, 17])
async def test_an_answer_with_too_few_or_too_many_numbers(size: int) -> None:
    async with reached_raw(Answers(vectors=bytes(size))) as way:
        with pytest.raises(UnavailableError, match="answered what this version can't read"):
            await embed(GrpcEmbedder(way), ["x"])


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (TextKind.PASSAGE, {}),
        (TextKind.PASSAGE, {"sketches": [b"a", b"b"]}),
        (TextKind.QUERY, {"query_tokens": [embedder_pb2.QueryTokens()] * 2}),
        (TextKind.QUERY, {"query_tokens": [embedder_pb2.QueryTokens(vectors=bytes(16), rarity=bytes(8))]}),
        (TextKind.QUERY, {"query_tokens": [embedder_pb2.QueryTokens(vectors=bytes(16), rarity=bytes(3))]}),
    ],
    ids=["none", "more", "more tokens", "fewer vectors", "half a number"],
)
async def test_an_answer_without_the_sketches_that_were_asked_for(kind: TextKind, fields: dict[str, Any]) -> None:
    async with reached_raw(Answers(vectors=bytes(4 * DIMENSIONS), **fields)) as way:
        with pytest.raises(UnavailableError, match="answered what this version can't read"):
            await GrpcEmbedder(way).embed(["x"], kind=kind, lane=Lane.QUERY, timeout=60.0, sketches=True)


@asynccontextmanager
async def reached_raw(servicer: embedder_pb2_grpc.EmbedderServiceServicer) -> AsyncIterator[Remote]:
    """Reach a servicer that a test wrote."""

    def register(raw: object) -> None:
        embedder_pb2_grpc.add_EmbedderServiceServicer_to_server(servicer, raw)  # type: ignore[arg-type]  # a server

    async with reached("embedder", lambda server, known: server.add(SERVICE, register, known)) as way:
        yield way
