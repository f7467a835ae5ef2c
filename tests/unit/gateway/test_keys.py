"""API keys while their store does not answer."""

from __future__ import annotations

import asyncio

import pytest

from memoryd.errors import UnavailableError
from memoryd.ports import Principal
from services.gateway.keys import RememberingKeys
from services.gateway.settings import GatewaySettings
from tests.support.gateway import FakeKeys

ANNA = Principal("k1", "acme", frozenset({"main"}))


class Store(FakeKeys):
    """Answers, fails or is late, as the test says."""

    def __init__(self) -> None:
        super().__init__({"s3cret": ANNA})
        self.error: Exception | None = None
        self.delay = 0.0
        self.asked = 0

    async def principal(self, key: str) -> Principal | None:
        self.asked += 1
        await asyncio.sleep(self.delay)
        if self.error:
            raise self.error
        return await super().principal(key)


class Clock:
    """Seconds, as the test says."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(store: Store, clock: Clock) -> RememberingKeys:
    return RememberingKeys(store, GatewaySettings(key_grace=60.0, key_patience=0.05), clock)


async def test_what_the_store_says_counts_while_it_answers(keys: RememberingKeys, store: Store) -> None:
    assert await keys.principal("s3cret") is ANNA
    store.principals = {}
    assert await keys.principal("s3cret") is None
    store.error = UnavailableError("NATS is down")
    with pytest.raises(UnavailableError):  # it was revoked before
        await keys.principal("s3cret")


@pytest.mark.parametrize("late", [False, True])
async def test_a_key_confirmed_a_moment_ago_is_let_in_for_a_while(
    keys: RememberingKeys, store: Store, clock: Clock, late: bool
) -> None:
    await keys.principal("s3cret")
    store.error = None if late else UnavailableError("NATS is down")
    store.delay = 60.0 if late else 0.0
    clock.now += 59.0
    for _ in range(10):
        assert await keys.principal("s3cret") is ANNA
    assert store.asked == 1 + 3  # then it is left alone
    store.error = UnavailableError("NATS is down")
    clock.now += 1.0
    store.delay = 0.0
    with pytest.raises(UnavailableError):
        await keys.principal("s3cret")


async def test_a_key_never_confirmed_is_not_let_in(keys: RememberingKeys, store: Store) -> None:
    store.error = UnavailableError("NATS is down")
    with pytest.raises(UnavailableError):
        await keys.principal("s3cret")
