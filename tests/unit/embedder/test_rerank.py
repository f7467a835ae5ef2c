"""Rerank calls before a cross-encoder that the tests control."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest

from memoryd.errors import DeadlineExceededError, ResourceExhaustedError, UnavailableError
from services.embedder.rerank import RerankQueue


class Lengths:
    """Scores a text by its length; waits while not open."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.batches: list[list[str]] = []
        self.broken = False

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.entered.release()
        assert self.open.wait(30)
        if self.broken:
            raise RuntimeError("boom")
        self.batches.append(list(texts))
        return [len(text) / 100 for text in texts]


@pytest.fixture
def lengths() -> Lengths:
    return Lengths()


@pytest.fixture
async def queue(lengths: Lengths) -> AsyncIterator[RerankQueue]:
    queue = RerankQueue(lengths, batch=2, waiting=1)
    yield queue
    lengths.open.set()
    await asyncio.to_thread(queue.close)


async def test_scores_come_in_the_order_of_the_texts(queue: RerankQueue, lengths: Lengths) -> None:
    assert await queue.score("q", ["aaa", "a", "aa"], 30) == [0.03, 0.01, 0.02]
    assert lengths.batches == [["aaa", "a"], ["aa"]]


async def test_a_late_call_ends_and_its_further_batches_cost_nothing(queue: RerankQueue, lengths: Lengths) -> None:
    lengths.open.clear()
    with pytest.raises(DeadlineExceededError, match=r"4 texts were not reranked within 0\.05 s"):
        await queue.score("q", ["a", "b", "c", "d"], 0.05)
    lengths.open.set()
    assert await queue.score("q", ["e"], 30) == [0.01]
    assert lengths.batches == [["a", "b"], ["e"]]


async def test_a_full_queue_refuses_at_once(queue: RerankQueue, lengths: Lengths) -> None:
    lengths.open.clear()
    calls = [asyncio.create_task(queue.score("q", ["a"], 30)) for _ in range(2)]
    assert await asyncio.to_thread(lengths.entered.acquire, timeout=30)
    with pytest.raises(ResourceExhaustedError, match="2 rerank calls are waiting: try again later"):
        await queue.score("q", ["a"], 30)
    lengths.open.set()
    assert await asyncio.gather(*calls) == [[0.01], [0.01]]
    assert await queue.score("q", ["a"], 30) == [0.01]


async def test_a_failing_cross_encoder_is_unavailable(queue: RerankQueue, lengths: Lengths) -> None:
    lengths.broken = True
    with pytest.raises(UnavailableError, match="the cross-encoder failed") as failed:
        await queue.score("q", ["a"], 30)
    assert "boom" not in str(failed.value)
