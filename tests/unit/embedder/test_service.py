"""The embedder's use cases on an engine that the tests control."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from memoryd.errors import (
    DeadlineExceededError,
    InvalidInputError,
    MemorydError,
    ResourceExhaustedError,
    UnavailableError,
)
from memoryd.ports import Embeddings, Lane, TextKind
from services.embedder.metrics import EmbedderMetrics
from services.embedder.requests import Text
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings
from tests.support.engine import DIMENSIONS, FakeEngine, vector_of
from tests.support.eventually import eventually

EVIL = "zzz"


def settings(**changes: object) -> EmbedderSettings:
    return EmbedderSettings.model_validate({"bulk_threads": 1, "batch_tokens": 256, "queue_tokens": 4_000} | changes)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
async def service(engine: FakeEngine, registry: CollectorRegistry) -> AsyncIterator[EmbedderService]:
    service = EmbedderService(engine, settings(), metrics=EmbedderMetrics(registry))
    await service.start()
    while engine.entered.acquire(blocking=False):
        pass
    engine.batches.clear()
    yield service
    engine.open.set()
    await service.close()


async def embed(
    service: EmbedderService, texts: Sequence[str], lane: Lane = Lane.BULK, timeout: float = 30.0
) -> Embeddings:
    return await service.embed(texts, kind=TextKind.PASSAGE, lane=lane, timeout=timeout)


async def stuck(service: EmbedderService, engine: FakeEngine) -> asyncio.Task[Embeddings]:
    """Block the bulk lane: its only thread is inside the engine."""
    engine.open.clear()
    task = asyncio.create_task(embed(service, ["stuck"]))
    assert await asyncio.to_thread(engine.entered.acquire, timeout=30)
    return task


async def waiting(registry: CollectorRegistry, texts: int) -> None:
    """Wait until so many texts wait for a batch of the bulk lane."""

    async def look() -> int:
        found = registry.get_sample_value("memoryd_embedder_waiting_texts", {"lane": Lane.BULK})
        return -1 if found is None else int(found)

    await eventually(look, texts)


def expected(engine: FakeEngine, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.stack([vector_of(ids) for ids in engine.tokenizer.ids(texts, TextKind.PASSAGE)])


def outcomes(registry: CollectorRegistry, outcome: str) -> float:
    labels = {"lane": Lane.BULK, "outcome": outcome}
    return registry.get_sample_value("memoryd_embedder_requests_total", labels) or 0.0


async def test_vectors_come_in_the_order_of_the_texts(service: EmbedderService, engine: FakeEngine) -> None:
    texts = [letter * length for letter in "abc" for length in (90, 3, 41, 200, 7)]
    embeddings = await embed(service, texts)
    assert np.array_equal(embeddings.vectors, expected(engine, texts))
    assert embeddings.tokens == sum(engine.tokenizer.count(texts))


async def test_a_call_counts_by_its_tokens_once_they_are_known(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    call = asyncio.create_task(embed(service, ["a" * 100]))  # a token each, where four bytes are taken for one
    await waiting(registry, 1)
    tokens = sum(engine.tokenizer.count(["stuck", "a" * 100]))
    assert registry.get_sample_value("memoryd_embedder_reserved_tokens", {"lane": Lane.BULK}) == tokens
    engine.open.set()
    await asyncio.gather(blocked, call)
    assert registry.get_sample_value("memoryd_embedder_reserved_tokens", {"lane": Lane.BULK}) == 0


async def test_batches_keep_to_the_budget_with_little_padding(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    call = asyncio.create_task(embed(service, ["a" * (7 * number % 60 + 1) for number in range(60)]))
    await waiting(registry, 60)
    engine.open.set()
    await asyncio.gather(blocked, call)
    padded = [len(batch) * max(map(len, batch)) for batch in engine.batches[1:]]
    tokens = sum(len(ids) for batch in engine.batches[1:] for ids in batch)
    assert max(padded) <= 256
    assert tokens / sum(padded) > 0.9

    batches = [engine.tokenizer.ids(["ready"], TextKind.PASSAGE), *engine.batches]  # the first one warms the lane up
    sizes = [sum(map(len, batch)) for batch in batches]
    computed = [len(batch) * max(map(len, batch)) for batch in batches]
    wanted: dict[str, int] = {
        "texts_total": sum(map(len, batches)),
        "tokens_total": sum(sizes),
        "padding_tokens_total": sum(computed) - sum(sizes),
        "batch_seconds_count": len(batches),
        "batch_tokens_sum": sum(sizes),
        "queue_seconds_count": 3,
    }

    async def told() -> dict[str, int]:
        lane = {"lane": Lane.BULK.value}
        return {name: int(registry.get_sample_value(f"memoryd_embedder_{name}", lane) or 0) for name in wanted}

    await eventually(told, wanted)  # a batch is counted after it is answered


async def test_single_callers_share_batches(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    texts = ["a" * (number % 5 + 1) for number in range(100)]
    calls = [asyncio.create_task(embed(service, [text])) for text in texts]
    await waiting(registry, 100)
    engine.open.set()
    found = await asyncio.gather(*calls)
    await blocked
    assert np.array_equal(np.concatenate([each.vectors for each in found]), expected(engine, texts))
    assert len(engine.batches) < 15


async def test_a_query_does_not_wait_behind_bulk(service: EmbedderService, engine: FakeEngine) -> None:
    (query,) = engine.tokenizer.ids(["query"], TextKind.PASSAGE)
    blocked = await stuck(service, engine)
    engine.passes = query
    embeddings = await embed(service, ["query"], Lane.QUERY)
    assert np.array_equal(embeddings.vectors, expected(engine, ["query"]))
    assert not blocked.done()


async def test_an_expired_call_ends_and_costs_nothing(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    with pytest.raises(DeadlineExceededError, match=r"2 texts were not embedded within 0\.05 s"):
        await embed(service, ["late", "later"], timeout=0.05)
    engine.open.set()
    await blocked
    await embed(service, ["after"])
    assert [len(batch) for batch in engine.batches] == [1, 1]
    assert outcomes(registry, "expired") == 1


async def test_a_deadline_that_has_passed_is_told_at_once(service: EmbedderService, engine: FakeEngine) -> None:
    for timeout in (0.0, -1.0):
        with pytest.raises(DeadlineExceededError, match="had passed"):
            await embed(service, ["late"], timeout=timeout)
    assert engine.batches == []


async def test_a_cancelled_call_costs_nothing(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    call = asyncio.create_task(embed(service, ["gone", "too"]))
    await waiting(registry, 2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await waiting(registry, 0)
    engine.open.set()
    await blocked
    await embed(service, ["after"])
    assert [len(batch) for batch in engine.batches] == [1, 1]
    assert outcomes(registry, "cancelled") == 1


def fails_on(text: str, engine: FakeEngine, error: BaseException) -> Callable[[Sequence[Sequence[int]]], None]:
    (evil,) = engine.tokenizer.ids([text], TextKind.PASSAGE)

    def fault(batch: Sequence[Sequence[int]]) -> None:
        if evil in [list(ids) for ids in batch]:
            raise error

    return fault


def fails(error: BaseException) -> Callable[[Sequence[Sequence[int]]], None]:
    def fault(batch: Sequence[Sequence[int]]) -> None:
        raise error

    return fault


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1)], ids=["error", "exit"])
async def test_the_one_bad_text_is_named_and_all_others_are_served(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry, error: BaseException
) -> None:
    blocked = await stuck(service, engine)
    engine.fault = fails_on(EVIL, engine, error)
    bad = asyncio.create_task(embed(service, ["abc", EVIL, "cde"]))
    good = [asyncio.create_task(embed(service, [text])) for text in ("efg", "ghi", "jkl")]
    await waiting(registry, 6)
    engine.open.set()
    await asyncio.gather(blocked, *good)
    with pytest.raises(InvalidInputError, match="text 1 can't be embedded: the model fails on it") as refused:
        await bad
    assert refused.value.details == {"index": "1"}
    assert "boom" not in str(refused.value)
    await embed(service, ["abc"])


@pytest.mark.parametrize("error", [RuntimeError("boom"), MemoryError(), SystemExit(1)], ids=["error", "memory", "exit"])
async def test_a_failing_engine_answers_everybody_and_may_recover(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry, error: BaseException
) -> None:
    blocked = await stuck(service, engine)
    calls = [asyncio.create_task(embed(service, [text, text + "x"])) for text in ("abc", "cde", "efg")]
    await waiting(registry, 6)
    engine.fault = fails(error)
    engine.open.set()
    for call in (blocked, *calls):
        with pytest.raises(UnavailableError, match="the embedding engine failed") as failed:
            await call
        assert "boom" not in str(failed.value)
    engine.fault = lambda batch: None
    await embed(service, ["abc"])
    assert outcomes(registry, "failed") == 4


async def test_values_that_are_not_finite_are_a_failure(service: EmbedderService, engine: FakeEngine) -> None:
    (engine.not_finite,) = engine.tokenizer.ids([EVIL], TextKind.PASSAGE)
    with pytest.raises(InvalidInputError, match="text 1 can't be embedded"):
        await embed(service, ["abc", EVIL])


async def test_a_full_lane_refuses_at_once_and_recovers(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    calls = [asyncio.create_task(embed(service, ["a" * 900] * 4)) for _ in range(4)]
    await waiting(registry, 16)
    with pytest.raises(ResourceExhaustedError, match="bulk lane is full"):
        await embed(service, ["a" * 900] * 4)
    engine.open.set()
    await asyncio.gather(blocked, *calls)
    await embed(service, ["a" * 900] * 4)
    assert outcomes(registry, "rejected") == 1
    assert registry.get_sample_value("memoryd_embedder_reserved_tokens", {"lane": Lane.BULK}) == 0


async def test_a_call_that_never_fits_says_so(service: EmbedderService, engine: FakeEngine) -> None:
    with pytest.raises(InvalidInputError, match="the call has about 5000 tokens, a lane takes 4000: send fewer texts"):
        await embed(service, ["a" * 1_000] * 20)
    assert engine.batches == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", "b" * 1_000], r"text 1 has 1012 tokens with its prompt, the model's window is 1000: split it"),
        (["a", " \n"], "text 1 is blank"),
        (["a", "\udc00"], "text 1 is not Unicode"),
    ],
    ids=["long", "blank", "surrogate"],
)
async def test_bad_texts_are_refused_before_any_cost(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry, texts: list[str], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        await embed(service, texts)
    assert engine.batches == []
    assert outcomes(registry, "invalid") == 1


@pytest.mark.parametrize("texts", [8_000], ids=["batch-cap"])
async def test_a_call_of_many_texts_is_served(engine: FakeEngine, texts: int) -> None:
    changes = settings(bulk_threads=2, queue_tokens=262_144)
    service = EmbedderService(engine, changes, metrics=EmbedderMetrics(CollectorRegistry()))
    await service.start()
    numbered = [f"text number {number}" for number in range(texts)]
    try:
        many, one = await asyncio.gather(embed(service, numbered), embed(service, ["one"], Lane.QUERY))
    finally:
        await service.close()
    assert np.array_equal(many.vectors, expected(engine, numbered))
    assert one.vectors.shape == (1, DIMENSIONS)


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1)], ids=["error", "exit"])
async def test_a_worker_that_dies_is_replaced_and_counted(
    service: EmbedderService, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    queue = service._queues[Lane.BULK]  # noqa: SLF001  (a thread between two batches can be hit in no other way)
    take, deaths = queue.take, iter([error])

    def dies() -> list[Text] | None:
        for death in deaths:
            raise death
        return take()

    monkeypatch.setattr(queue, "take", dies)
    await embed(service, ["wakes the thread"])
    assert (await embed(service, ["after"])).vectors.shape == (1, DIMENSIONS)
    assert registry.get_sample_value("memoryd_embedder_worker_deaths_total", {"lane": Lane.BULK}) == 1


async def test_threads_that_may_not_give_way_serve_all_the_same(
    engine: FakeEngine, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: int) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr("os.setpriority", refused)
    service = EmbedderService(engine, settings(), metrics=EmbedderMetrics(registry))
    try:
        await service.start()
        assert registry.get_sample_value("memoryd_embedder_worker_deaths_total", {"lane": Lane.BULK}) is None
    finally:
        await service.close()


async def test_closing_answers_who_waits(
    service: EmbedderService, engine: FakeEngine, registry: CollectorRegistry
) -> None:
    blocked = await stuck(service, engine)
    call = asyncio.create_task(embed(service, ["abc"]))
    await waiting(registry, 1)
    closing = asyncio.create_task(service.close())
    with pytest.raises(UnavailableError, match="shutting down"):
        await call
    engine.open.set()
    assert (await blocked).vectors.shape == (1, DIMENSIONS)
    await closing
    with pytest.raises(UnavailableError, match="shutting down"):
        await embed(service, ["abc"])


async def test_an_engine_that_can_not_embed_is_not_ready(engine: FakeEngine) -> None:
    engine.fault = fails(RuntimeError())
    service = EmbedderService(engine, settings(), metrics=EmbedderMetrics(CollectorRegistry()))
    with pytest.raises(MemorydError, match="the embedding engine failed"):
        await service.start()
    await service.close()
