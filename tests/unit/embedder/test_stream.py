"""Parts through a bounded window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from unittest.mock import AsyncMock

import numpy as np
import pytest

from memoryd.errors import ResourceExhaustedError
from memoryd.ports import Embeddings
from services.embedder import stream
from services.embedder.stream import in_order, patiently
from tests.support.collect import collect


class Work:
    """Doubles numbers; each waits until it is let go, in whatever order."""

    def __init__(self, *, open_: bool = True) -> None:
        self.running: dict[int, asyncio.Event] = {}
        self.most = self.given = 0
        self.open = open_

    async def numbers(self, count: int) -> AsyncIterator[int]:
        for number in range(count):
            self.given += 1
            yield number

    async def __call__(self, number: int) -> int:
        self.running[number] = asyncio.Event()
        self.most = max(self.most, len(self.running))
        try:
            if self.open:
                await asyncio.sleep(0)
            else:
                await self.running[number].wait()
            if number == 13:
                raise ValueError("thirteen")
            return number * 2
        finally:
            del self.running[number]


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_results_come_in_order_whatever_ends_first() -> None:
    work = Work(open_=False)
    async with aclosing(in_order(work.numbers(3), work, 3)) as results:
        first = asyncio.ensure_future(anext(results))
        await turns()
        work.running[2].set()
        work.running[1].set()
        await turns()
        assert not first.done()
        work.running[0].set()
        assert [await first, *[result async for result in results]] == [0, 2, 4]


async def test_no_more_than_so_many_are_begun_before_the_caller_takes_one() -> None:
    work = Work()
    async with aclosing(in_order(work.numbers(12), work, 4)) as results:
        assert await anext(results) == 0
        await turns()
        assert work.given == 4
        assert [result async for result in results] == [2 * number for number in range(1, 12)]
    assert work.most <= 4


async def test_an_error_comes_after_the_results_before_it_and_ends_all_work() -> None:
    work = Work()
    found: list[int] = []
    with pytest.raises(ValueError, match="thirteen"):
        await collect(in_order(work.numbers(100), work, 4), found)
    assert found == [2 * number for number in range(13)]
    assert work.running == {}


async def test_an_error_of_the_parts_is_raised() -> None:
    async def parts() -> AsyncIterator[int]:
        yield 1
        raise ValueError("parts")

    with pytest.raises(ValueError, match="parts"):
        async with aclosing(in_order(parts(), Work(), 2)) as results:
            assert [result async for result in results] == [2]


async def test_who_leaves_early_leaves_no_work_behind() -> None:
    work = Work(open_=False)
    async with aclosing(in_order(work.numbers(100), work, 4)) as results:
        first = asyncio.ensure_future(anext(results))
        await turns()
        work.running[0].set()
        await first
        assert len(work.running) == 3
    assert work.running == {}


async def test_a_full_queue_is_waited_for_as_long_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_LONGEST_WAIT", 0.001)
    refusals = 5
    answer = Embeddings(np.empty((0, 1), np.float32), 0)

    async def embed(left: float) -> Embeddings:
        nonlocal refusals
        assert left <= 30
        refusals -= 1
        if refusals >= 0:
            raise ResourceExhaustedError("full", retry_after=9.0)
        return answer

    assert await patiently(embed, 30) is answer
    full = ResourceExhaustedError("no quota left", reason="PROVIDER_QUOTA")
    with pytest.raises(ResourceExhaustedError, match="no quota left"):
        await patiently(AsyncMock(side_effect=full), 30)
    refusals = 10**9
    with pytest.raises(ResourceExhaustedError):
        await patiently(embed, 0.01)
