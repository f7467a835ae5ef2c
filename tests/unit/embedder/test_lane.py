"""The queue of a lane: what makes a batch."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import InvalidInputError, ResourceExhaustedError, UnavailableError
from services.embedder.lane import Lane
from services.embedder.pace import Pace
from services.embedder.requests import Request, Text

LENGTHS = st.lists(st.integers(1, 200), min_size=1, max_size=40)


def lane(batch_tokens: int = 100) -> Lane:
    return Lane("bulk", batch_tokens=batch_tokens, queue_tokens=1_000)


def request(*lengths: int, seconds: float = 60.0, tenant: str = "") -> Request:
    return Request([[0] * length for length in lengths], 1, time.monotonic() + seconds, tenant=tenant)


def take(queue: Lane) -> list[int]:
    return [len(text.ids) for text in queue.take() or []]


async def test_the_oldest_comes_first_with_those_nearest_in_length() -> None:
    queue = lane()
    queue.put(request(30))
    queue.put(request(10, 33, 29, 50))
    assert take(queue) == [29, 30, 33]
    assert take(queue) == [10]
    assert take(queue) == [50]


async def test_a_text_longer_than_the_budget_goes_alone() -> None:
    queue = lane()
    queue.put(request(500, 480))
    assert [take(queue), take(queue)] == [[500], [480]]


@given(st.lists(LENGTHS, min_size=1, max_size=4))
async def test_every_text_is_taken_once_and_the_budget_is_kept(calls: Sequence[Sequence[int]]) -> None:
    queue = lane()
    requests = [request(*lengths) for lengths in calls]
    for each in requests:
        queue.put(each)
    taken: list[Text] = []
    while len(taken) < sum(map(len, calls)):
        oldest = next(text for each in requests for text in each.texts if text not in taken)
        batch = queue.take()
        assert batch is not None
        assert oldest in batch
        assert len(batch) == 1 or len(batch) * max(len(text.ids) for text in batch) <= 100
        taken += batch
    assert sorted(map(id, taken)) == sorted(id(text) for each in requests for text in each.texts)


async def test_what_is_over_costs_nothing() -> None:
    queue = lane()
    expired, cancelled, wanted = request(10, 10, seconds=-1), request(10), request(10)
    for each in (expired, cancelled, wanted):
        queue.put(each)
    cancelled.abandon()
    assert [text.request for text in queue.take() or []] == [wanted]


async def test_a_removed_request_is_gone() -> None:
    queue = lane()
    gone, stays = request(10, 20), request(20)
    queue.put(gone)
    queue.put(stays)
    queue.remove(gone)
    queue.remove(gone)
    assert take(queue) == [20]
    assert queue.close() == []


def test_tokens_are_bounded() -> None:
    queue = lane()
    queue.reserve(900)
    with pytest.raises(ResourceExhaustedError, match=r"bulk lane is full \(900 of 1000 tokens\): try again later"):
        queue.reserve(101)
    queue.reserve(100)
    queue.release(900)
    queue.reserve(900)
    with pytest.raises(InvalidInputError, match="about 1001 tokens, a lane takes 1000: send fewer texts a call"):
        queue.reserve(1_001)


async def test_tenants_take_turns_by_tokens() -> None:
    queue = lane()
    queue.put(request(*[100] * 6, tenant="much"))
    assert take(queue) == [100]
    queue.put(request(*[60] * 4, tenant="little"))
    taken = [(queue.take() or [])[0].request.tenant for _ in range(9)]
    assert taken == ["little", "little", "much", "little", "little", "much", "much", "much", "much"]


async def test_who_comes_back_has_nothing_saved_up() -> None:
    queue = lane()
    queue.put(request(100, tenant="rare"))
    assert take(queue) == [100]
    queue.put(request(*[100] * 9, tenant="steady"))
    assert [take(queue) for _ in range(5)] == [[100]] * 5
    queue.put(request(*[90] * 9, tenant="rare"))
    taken = [(queue.take() or [])[0].request.tenant for _ in range(6)]
    assert taken.count("rare") == 4  # one more than its half, as it begins a turn


async def test_company_of_other_tenants_is_charged_to_them() -> None:
    queue = lane(batch_tokens=100)
    queue.put(request(*[50] * 6, tenant="a"))
    queue.put(request(*[50] * 6, tenant="b"))
    taken = [text.request.tenant for _ in range(3) for text in queue.take() or []]
    assert abs(taken.count("a") - taken.count("b")) <= 2


def test_what_would_not_be_embedded_in_time_is_refused_at_once() -> None:
    queue = lane(batch_tokens=100)
    queue.reserve(500, timeout=0.001)  # nothing is known of the pace
    queue.pace.note(100, 1.0)
    queue.reserve(100, timeout=21.0)
    with pytest.raises(ResourceExhaustedError, match="600 tokens to embed first, too many for this call's 5 s") as full:
        queue.reserve(100, timeout=5.0)
    assert full.value.retry_after == pytest.approx(7 - 5 * 0.3)
    queue.release(600)
    queue.reserve(900, timeout=5.0)  # a call alone is tried
    with pytest.raises(ResourceExhaustedError, match="lane is full") as full:
        queue.reserve(200)
    assert full.value.retry_after == pytest.approx(1.0)


def test_the_pace_is_that_of_large_batches_and_all_threads() -> None:
    pace = Pace(threads=2, batch_tokens=100)
    assert pace.seconds(1_000_000) == 0
    pace.note(10, 5.0)
    assert pace.seconds(1_000_000) == 0
    pace.note(100, 1.0)
    assert pace.seconds(100) == pytest.approx(0.5)
    for _ in range(200):
        pace.note(100, 2.0)
    assert pace.seconds(100) == pytest.approx(1.0, rel=0.01)


async def test_a_closed_lane_gives_back_what_waits_and_takes_nothing() -> None:
    queue = lane()
    waiting = request(10, 20)
    queue.put(waiting)
    assert queue.close() == [waiting]
    assert queue.take() is None
    with pytest.raises(UnavailableError, match="shutting down"):
        queue.put(request(1))
