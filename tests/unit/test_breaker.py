"""A dependency that fails again and again is left alone, and tried again."""

from __future__ import annotations

import pytest

from memoryd.breaker import OPEN, Breaker
from memoryd.errors import UnavailableError


class Clock:
    """Seconds, as the test says."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("a store", 3, 1.0, clock)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.enter()
        breaker.failed()


def refused(breaker: Breaker) -> bool:
    try:
        breaker.enter()
    except UnavailableError as error:
        return error.reason == OPEN
    return False


def test_it_opens_after_failures_in_a_row(breaker: Breaker) -> None:
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 2)
    assert not refused(breaker)
    breaker.failed()
    assert refused(breaker)


def test_after_a_pause_one_call_tries(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 1.0
    assert not refused(breaker)
    assert refused(breaker)
    breaker.failed()
    clock.now += 0.9
    assert refused(breaker)
    clock.now += 0.1
    assert not refused(breaker)
    breaker.succeeded()
    assert not refused(breaker)


def test_a_try_whose_outcome_nobody_learns_does_not_keep_it_open(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 1.0
    assert not refused(breaker)  # its caller went away
    clock.now += 1.0
    assert not refused(breaker)
