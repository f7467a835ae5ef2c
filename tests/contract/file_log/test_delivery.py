"""What consumers are given, and when again."""

from __future__ import annotations

import asyncio
import time

import pytest

from memoryd.domain.files import FileKey, FileState, LoggedFile
from memoryd.ports import FileLog
from tests.contract.file_log.steps import LEASE_SECONDS, LONG, NEIGHBOURS, SCOPE, fetch, paths, put, state

# Of one machine: they are read in different ways.
CLOCKS = 0.5


class TestDelivery:
    async def test_a_consumer_begins_with_the_last_state_of_every_file(self, log: FileLog) -> None:
        await put(log, "a.md", "old")
        await put(log, "b.md")
        await put(log, "a.md", "new")
        await log.put(FileState.deletion(FileKey(SCOPE, "c.md"), 1.0), expected=None, live=False)
        await log.subscribe("one")
        deliveries = await fetch(log)
        assert [(d.file.state.key.path, d.file.state.content, d.attempt) for d in deliveries] == [
            ("b.md", b"text\n", 1),
            ("a.md", b"new", 1),
            ("c.md", None, 1),
        ]

    async def test_subscribing_again_changes_nothing(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (delivery,) = await fetch(log)
        await delivery.ack()
        await log.subscribe("one")
        assert await log.pending("one", SCOPE) == 0
        assert list(await fetch(log, timeout=0)) == []

    async def test_consumers_settle_for_themselves(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        await log.subscribe("two")
        (delivery,) = await fetch(log, "one")
        await delivery.ack()
        assert await log.pending("one", SCOPE) == 0
        assert await log.pending("two", SCOPE) == 1
        assert paths(await fetch(log, "two")) == ["a.md"]

    async def test_without_a_state_a_fetch_waits_no_longer_than_asked(self, log: FileLog) -> None:
        await log.subscribe("one")
        assert list(await fetch(log, timeout=0.01)) == []

    async def test_a_put_wakes_a_fetch(self, log: FileLog) -> None:
        await log.subscribe("one")
        waiting = asyncio.create_task(fetch(log, timeout=LONG))
        await asyncio.sleep(0)
        revision = await put(log)
        (delivery,) = await waiting
        assert delivery.file == LoggedFile(state(), revision)

    async def test_live_states_come_first_then_the_oldest(self, log: FileLog) -> None:
        await log.subscribe("one")
        for path, live in [("1.md", False), ("2.md", False), ("3.md", True), ("4.md", False), ("5.md", True)]:
            await put(log, path, live=live)
        assert paths(await fetch(log, limit=3)) == ["3.md", "5.md", "1.md"]
        assert paths(await fetch(log)) == ["2.md", "4.md"]

    async def test_live_states_are_given_alone_and_the_others_too(self, log: FileLog) -> None:
        await log.subscribe("one")
        for path, live in [("1.md", False), ("2.md", True), ("3.md", False)]:
            await put(log, path, live=live)
        assert paths(await log.fetch("one", limit=10, timeout=LONG, live=False)) == ["1.md", "3.md"]
        assert paths(await log.fetch("one", limit=10, timeout=LONG, live=True)) == ["2.md"]
        assert not await log.fetch("one", limit=10, timeout=0, live=False)
        assert not await log.fetch("one", limit=10, timeout=0, live=True)

    async def test_who_waits_for_live_states_alone_gets_one_and_no_other(self, log: FileLog) -> None:
        await log.subscribe("one")
        waiting = asyncio.create_task(log.fetch("one", limit=10, timeout=LONG, live=True))
        await put(log, "1.md")
        await put(log, "2.md", live=True)
        assert paths(await waiting) == ["2.md"]

    async def test_who_waits_for_the_others_alone_gets_one_and_no_live_state(self, log: FileLog) -> None:
        await log.subscribe("one")
        waiting = asyncio.create_task(log.fetch("one", limit=10, timeout=LONG, live=False))
        await put(log, "1.md", live=True)
        await put(log, "2.md")
        assert paths(await waiting) == ["2.md"]
        assert paths(await log.fetch("one", limit=10, timeout=LONG, live=True)) == ["1.md"]

    async def test_a_live_state_is_retried_as_a_live_one(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log, live=True)
        (delivery,) = await log.fetch("one", limit=10, timeout=LONG, live=True)
        await delivery.retry(0.2)
        assert not await log.fetch("one", limit=10, timeout=0, live=False)
        (again,) = await log.fetch("one", limit=10, timeout=LONG, live=True)
        assert again.attempt == 2

    async def test_a_leased_state_is_not_given_twice(self, log: FileLog) -> None:
        await log.subscribe("one")
        await asyncio.gather(*(put(log, f"{n}.md") for n in range(40)))
        results = await asyncio.gather(*(fetch(log, limit=3, timeout=0) for _ in range(10)))
        given = [path for result in results for path in paths(result)]
        assert len(given) == len(set(given)) == 30

    async def test_a_retry_comes_after_its_delay_and_not_before(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (delivery,) = await fetch(log)
        started = asyncio.get_running_loop().time()
        await delivery.retry(0.5)
        (again,) = await fetch(log)
        assert asyncio.get_running_loop().time() - started >= 0.5
        assert again.attempt == 2

    async def test_a_retry_at_once_wakes_a_fetch(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (delivery,) = await fetch(log)
        waiting = asyncio.create_task(fetch(log))
        await delivery.retry(0)
        assert [d.attempt for d in await waiting] == [2]

    async def test_a_delayed_state_does_not_hold_others_back(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log, "a.md", live=True)
        (delivery,) = await fetch(log)
        await delivery.retry(60)
        await put(log, "b.md")
        assert paths(await fetch(log)) == ["b.md"]

    async def test_a_later_state_supersedes_one_in_flight(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log, content="1")
        (old,) = await fetch(log)
        await put(log, content="2")
        await old.ack()
        await old.retry(60)
        assert not await old.in_progress()
        assert await log.pending("one", SCOPE) == 1
        (new,) = await fetch(log)
        assert (new.file.state.content, new.attempt) == (b"2", 1)
        await new.ack()
        assert await log.pending("one", SCOPE) == 0

    async def test_a_hundred_edits_are_one_delivery(self, log: FileLog) -> None:
        await log.subscribe("one")
        for n in range(100):
            await put(log, content=str(n))
        assert [d.file.state.content for d in await fetch(log)] == [b"99"]

    async def test_acking_twice_is_fine(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (delivery,) = await fetch(log)
        await delivery.ack()
        await delivery.ack()
        assert await log.pending("one", SCOPE) == 0

    async def test_a_forgotten_consumer_begins_anew(self, log: FileLog) -> None:
        await log.unsubscribe("never-was")
        for consumer in ("one", "two"):
            await log.subscribe(consumer)
        await put(log, live=True)
        await put(log, "b.md")
        for consumer in ("one", "two"):
            for delivery in await fetch(log, consumer):
                await delivery.ack()
            assert await log.pending(consumer, SCOPE) == 0
        await log.unsubscribe("one")
        await log.subscribe("one")
        assert [await log.pending(consumer, SCOPE) for consumer in ("one", "two")] == [2, 0]
        assert sorted(paths(await fetch(log))) == ["a.md", "b.md"]

    async def test_pending_counts_what_is_not_settled(self, log: FileLog) -> None:
        await log.subscribe("one")
        assert await log.pending("one", SCOPE) == 0
        await asyncio.gather(*(put(log, f"{n}.md") for n in range(5)))
        assert await log.pending("one", SCOPE) == 5
        deliveries = await fetch(log)
        assert await log.pending("one", SCOPE) == 5
        await deliveries[0].ack()
        await deliveries[1].retry(60)
        assert await log.pending("one", SCOPE) == 4

    async def test_it_is_told_since_when_the_oldest_waits(self, log: FileLog) -> None:
        await put(log, "old.md")
        began = time.time()
        await log.subscribe("one")
        waiting = await log.pending_since("one", SCOPE)
        assert began - CLOCKS <= waiting <= time.time() + CLOCKS  # no earlier than there was somebody to wait for
        await put(log, "new.md")
        assert await log.pending_since("one", SCOPE) == waiting
        old, new = await fetch(log)
        await old.ack()
        later = await log.pending_since("one", SCOPE)
        assert waiting < later <= time.time() + CLOCKS
        await new.ack()
        assert [await log.pending_since("one", scope) for scope in (SCOPE, *NEIGHBOURS)] == [0, 0, 0]

    async def test_a_big_batch_is_delivered_whole(self, log: FileLog) -> None:
        await log.subscribe("one")
        await asyncio.gather(*(put(log, f"{n}.md") for n in range(1_000)))
        seen: set[str] = set()
        while len(seen) < 1_000:
            deliveries = await fetch(log, limit=150)
            seen |= set(paths(deliveries))
            await asyncio.gather(*(delivery.ack() for delivery in deliveries))
        assert await log.pending("one", SCOPE) == 0


class TestLease:
    @pytest.fixture
    def lease(self) -> float:
        return LEASE_SECONDS

    async def test_a_lease_that_is_over_gives_the_state_again(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        attempts = [(await fetch(log))[0].attempt for _ in range(3)]
        assert attempts == [1, 2, 3]
        assert await log.pending("one", SCOPE) == 1

    async def test_a_lease_lasts(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        started = asyncio.get_running_loop().time()
        await fetch(log)
        await fetch(log)
        assert asyncio.get_running_loop().time() - started >= LEASE_SECONDS

    async def test_work_in_progress_keeps_its_lease(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (delivery,) = await fetch(log)
        again = asyncio.create_task(fetch(log))
        started = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - started < 2 * LEASE_SECONDS:
            assert await delivery.in_progress()
            await asyncio.sleep(LEASE_SECONDS / 6)
            assert not again.done()
        assert [d.attempt for d in await again] == [2]

    async def test_whoever_lost_the_lease_moves_nothing(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (late,) = await fetch(log)
        (holder,) = await fetch(log)
        await late.retry(60)
        assert not await late.in_progress()
        (again,) = await fetch(log)
        assert (holder.attempt, again.attempt) == (2, 3)
