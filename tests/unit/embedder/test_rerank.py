"""Rerank calls before a cross-encoder that the tests control."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from memoryd.errors import DeadlineExceededError, ResourceExhaustedError, UnavailableError
from services.embedder.metrics import EmbedderMetrics
from services.embedder.rerank import RerankQueue
from services.embedder.settings import EmbedderSettings
from tests.support.eventually import eventually
from tests.support.reranker import Lengths

SETTINGS = EmbedderSettings(rerank_batch_tokens=64, rerank_queue_tokens=100)


@pytest.fixture
def lengths() -> Lengths:
    return Lengths()


@pytest.fixture
async def queue(lengths: Lengths) -> AsyncIterator[RerankQueue]:
    queue = RerankQueue(lengths, SETTINGS, EmbedderMetrics(CollectorRegistry()), threads=1)
    queue.start()
    yield queue
    lengths.open.set()
    await asyncio.to_thread(queue.close, UnavailableError("closed"))


def scores(*lengths: int) -> list[float]:
    return [length / 1024 for length in lengths]


async def stuck(queue: RerankQueue, lengths: Lengths) -> asyncio.Task[list[float]]:
    """Block the only thread inside the cross-encoder."""
    lengths.open.clear()
    call = asyncio.create_task(queue.score("q", ["x" * 5], 30))
    assert await asyncio.to_thread(lengths.entered.acquire, timeout=30)
    return call


async def waiting(queue: RerankQueue, texts: int) -> None:
    async def look() -> int:
        return queue.lane.waiting

    await eventually(look, texts)


async def test_scores_come_in_the_order_of_the_texts(queue: RerankQueue, lengths: Lengths) -> None:
    assert await queue.score("q", ["aaa", "a", "aa"], 30) == scores(3, 1, 2)
    assert lengths.batches == [[1, 2, 3]]


async def test_batches_keep_to_the_token_budget(queue: RerankQueue, lengths: Lengths) -> None:
    assert await queue.score("q", ["x" * 30] * 5, 30) == scores(*[30] * 5)
    assert lengths.batches == [[30, 30], [30, 30], [30]]


async def test_calls_share_batches(queue: RerankQueue, lengths: Lengths) -> None:
    blocked = await stuck(queue, lengths)
    calls = [asyncio.create_task(queue.score("q", ["x" * (20 + number)], 30)) for number in range(3)]
    await waiting(queue, 3)
    lengths.open.set()
    assert await asyncio.gather(*calls) == [scores(20), scores(21), scores(22)]
    await blocked
    assert lengths.batches == [[5], [20, 21], [22]]


async def test_what_was_scored_in_time_is_given(queue: RerankQueue, lengths: Lengths) -> None:
    lengths.gates = 1
    found = await queue.score("q", ["x" * 60, "x" * 50, "x" * 40], 1.0)
    assert found[0] == 60 / 1024
    assert [math.isnan(score) for score in found] == [False, True, True]


async def test_a_late_call_ends_and_its_further_batches_cost_nothing(queue: RerankQueue, lengths: Lengths) -> None:
    blocked = await stuck(queue, lengths)
    with pytest.raises(DeadlineExceededError, match=r"none of 4 texts was reranked within 0\.05 s"):
        await queue.score("q", ["a", "b", "c", "d"], 0.05)
    lengths.open.set()
    await blocked
    assert await queue.score("q", ["ee"], 30) == scores(2)
    assert lengths.batches == [[5], [2]]


async def test_a_full_queue_refuses_at_once(queue: RerankQueue, lengths: Lengths) -> None:
    blocked = await stuck(queue, lengths)
    with pytest.raises(ResourceExhaustedError, match=r"the rerank lane is full \(1 of 100 tokens\): try again later"):
        await queue.score("q", ["x" * 400], 30)
    lengths.open.set()
    assert await blocked == scores(5)


async def test_a_failing_cross_encoder_is_unavailable(queue: RerankQueue, lengths: Lengths) -> None:
    lengths.broken = True
    with pytest.raises(UnavailableError, match="the cross-encoder failed") as failed:
        await queue.score("q", ["a"], 30)
    assert "boom" not in str(failed.value)


async def test_closing_answers_who_waits(queue: RerankQueue, lengths: Lengths) -> None:
    blocked = await stuck(queue, lengths)
    call = asyncio.create_task(queue.score("q", ["a"], 30))
    await waiting(queue, 1)
    closing = asyncio.create_task(asyncio.to_thread(queue.close, UnavailableError("closed")))
    with pytest.raises(UnavailableError, match="closed"):
        await call
    lengths.open.set()
    assert await blocked == scores(5)
    await closing
