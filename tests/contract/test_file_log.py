"""What every file log does."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.errors import ConflictError
from memoryd.ports import Delivery, FileLog
from tests.contract.registry import FILE_LOGS, Opened, opened

SCOPE = Scope("acme", "main")
NEIGHBOURS = (Scope("acme", "other"), Scope("rival", "main"))
LEASE_SECONDS = 1.0  # in the tests that wait for its end
LONG = 10.0  # a wait that ends as soon as what it waits for comes


@pytest.fixture
def lease() -> float:
    return 60.0


@pytest.fixture(params=sorted(FILE_LOGS))
async def held(request: pytest.FixtureRequest, tmp_path: Path, lease: float) -> AsyncIterator[Opened[FileLog]]:
    async with opened(lambda place: FILE_LOGS[request.param](place, lease), tmp_path) as adapter:
        yield adapter


@pytest.fixture
def log(held: Opened[FileLog]) -> FileLog:
    return held.now


def state(path: str = "a.md", content: str = "text\n", scope: Scope = SCOPE) -> FileState:
    data = content.encode()
    return FileState(key=FileKey(scope, path), hash=hashlib.sha256(data).hexdigest(), content=data, modified=1.5)


async def put(log: FileLog, path: str = "a.md", content: str = "text\n", *, live: bool = False) -> Revision:
    last = await log.get(FileKey(SCOPE, path))
    return await log.put(state(path, content), expected=last.revision if last else None, live=live)


async def fetch(log: FileLog, consumer: str = "one", limit: int = 10, timeout: float = LONG) -> Sequence[Delivery]:
    return await log.fetch(consumer, limit=limit, timeout=timeout)


async def scanned(log: FileLog, scope: Scope = SCOPE) -> list[LoggedFile]:
    return [file async for file in log.scan(scope)]


def paths(deliveries: Sequence[Delivery]) -> list[str]:
    return [delivery.file.state.key.path for delivery in deliveries]


class TestStates:
    @pytest.mark.parametrize(
        "kept",
        [
            FileState(
                key=FileKey(SCOPE, "sessions/s.jsonl"),
                hash="h",
                content="日记 🦀 é\n".encode(),
                modified=1_700_000_000.123456,
                source=Source.SESSIONS,
                private=True,
                lossy=True,
            ),
            replace(state(), content=b""),
            FileState.deletion(FileKey(SCOPE, "a.md"), 2.0),
            replace(state(), content=None, hash="", problem=Problem("TOO_LARGE", "12 MiB")),
        ],
        ids=["all-fields", "empty", "deletion", "problem"],
    )
    async def test_a_state_comes_back_as_it_was(self, log: FileLog, kept: FileState) -> None:
        revision = await log.put(kept, expected=None, live=True)
        assert await log.get(kept.key) == LoggedFile(kept, revision)
        assert await scanned(log) == [LoggedFile(replace(kept, content=None), revision)]

    @pytest.mark.parametrize("path", ["memory/发芽 试验.md", "a b@c#d.md", "%_*[x]?>.md", "é/ñ.md", "x" * 200 + ".md"])
    async def test_any_path_names_a_file(self, log: FileLog, path: str) -> None:
        await log.subscribe("one")
        revision = await log.put(state(path), expected=None, live=False)
        found = await log.get(FileKey(SCOPE, path))
        assert found is not None
        assert (found.state, found.revision) == (state(path), revision)
        assert [file.state.key.path for file in await scanned(log)] == [path]
        assert paths(await fetch(log)) == [path]

    async def test_paths_differ_by_case_and_by_every_character(self, log: FileLog) -> None:
        names = ["Note.md", "note.md", "n_te.md", "n%te.md"]
        for name in names:
            await log.put(state(name, name), expected=None, live=False)
        assert [file.state.key.path for file in await scanned(log)] == sorted(names)
        for name in names:
            found = await log.get(FileKey(SCOPE, name))
            assert found is not None
            assert found.state.content == name.encode()

    async def test_an_unknown_file_is_none(self, log: FileLog) -> None:
        assert await log.get(FileKey(SCOPE, "a.md")) is None
        assert await scanned(log) == []
        assert list(await log.scopes()) == []

    async def test_large_content(self, log: FileLog) -> None:
        content = "".join(f"line {n}\n" for n in range(400_000))
        await put(log, content=content)
        found = await log.get(FileKey(SCOPE, "a.md"))
        assert found is not None
        assert found.state.content == content.encode()

    async def test_a_scan_gives_many_files_once_each_by_path(self, log: FileLog) -> None:
        names = sorted(f"memory/{n:04}.md" for n in range(1_203))
        await asyncio.gather(*(log.put(state(name), expected=None, live=False) for name in reversed(names)))
        found = await scanned(log)
        assert [file.state.key.path for file in found] == names
        assert {file.state.content for file in found} == {None}


class TestCompareAndSet:
    async def test_revisions_grow(self, log: FileLog) -> None:
        revisions = [await put(log, path) for path in ("b.md", "a.md", "b.md", "c.md", "b.md")]
        assert revisions == sorted(set(revisions))

    async def test_a_stale_expectation_is_refused_and_changes_nothing(self, log: FileLog) -> None:
        first = await put(log, content="1")
        second = await put(log, content="2")
        for expected in (None, first, Revision(second.epoch, second.sequence + 1)):
            with pytest.raises(ConflictError):
                await log.put(state(content="3"), expected=expected, live=False)
        assert await log.get(FileKey(SCOPE, "a.md")) == LoggedFile(state(content="2"), second)

    async def test_expecting_a_file_that_was_never_logged_is_refused(self, log: FileLog) -> None:
        with pytest.raises(ConflictError):
            await log.put(state(), expected=Revision(1, 1), live=False)
        assert await log.get(FileKey(SCOPE, "a.md")) is None

    @pytest.mark.parametrize("exists", [False, True])
    async def test_of_twenty_writers_one_wins(self, log: FileLog, exists: bool) -> None:
        expected = await put(log) if exists else None
        puts = [log.put(state(content=str(n)), expected=expected, live=False) for n in range(20)]
        results = await asyncio.gather(*puts, return_exceptions=True)
        (winner,) = [n for n, result in enumerate(results) if isinstance(result, Revision)]
        assert all(isinstance(result, ConflictError) for n, result in enumerate(results) if n != winner)
        found = await log.get(FileKey(SCOPE, "a.md"))
        assert found is not None
        assert (found.state.content, found.revision) == (str(winner).encode(), results[winner])


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
        await old.in_progress()
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
            await delivery.in_progress()
            await asyncio.sleep(LEASE_SECONDS / 6)
            assert not again.done()
        assert [d.attempt for d in await again] == [2]

    async def test_whoever_lost_the_lease_moves_nothing(self, log: FileLog) -> None:
        await log.subscribe("one")
        await put(log)
        (late,) = await fetch(log)
        (holder,) = await fetch(log)
        await late.retry(60)
        await late.in_progress()
        (again,) = await fetch(log)
        assert (holder.attempt, again.attempt) == (2, 3)


class TestScopes:
    async def test_equal_paths_of_two_scopes_are_two_files(self, log: FileLog) -> None:
        everywhere = (SCOPE, *NEIGHBOURS)
        for scope in everywhere:
            await log.put(state(content=str(scope), scope=scope), expected=None, live=False)
        assert sorted(await log.scopes()) == sorted(everywhere)
        await log.subscribe("one")
        deliveries = await fetch(log)
        for scope in everywhere:
            found = await log.get(FileKey(scope, "a.md"))
            assert found is not None
            assert found.state.content == str(scope).encode()
            assert [file.state.key for file in await scanned(log, scope)] == [FileKey(scope, "a.md")]
            assert await log.pending("one", scope) == 1
        (mine,) = [d for d in deliveries if d.file.state.key.scope == SCOPE]
        await mine.ack()
        assert [await log.pending("one", scope) for scope in everywhere] == [0, 1, 1]

    async def test_a_revision_of_another_scope_is_no_expectation(self, log: FileLog) -> None:
        revision = await put(log)
        with pytest.raises(ConflictError):
            await log.put(state(scope=NEIGHBOURS[0]), expected=revision, live=False)


class TestRestart:
    async def test_everything_is_there_again_and_leases_are_free(self, held: Opened[FileLog]) -> None:
        log = held.now
        await log.subscribe("one")
        for path in ("settled.md", "leased.md", "waiting.md"):
            await put(log, path)
        settled, leased, _ = await fetch(log, limit=3)
        await settled.ack()
        log = await held.again()
        assert await log.get(FileKey(SCOPE, "leased.md")) == leased.file
        assert await log.pending("one", SCOPE) == 2
        deliveries = await fetch(log)
        assert sorted(paths(deliveries)) == ["leased.md", "waiting.md"]
        assert await put(log, "new.md") > leased.file.revision

    async def test_a_retry_keeps_its_delay(self, held: Opened[FileLog]) -> None:
        log = held.now
        await log.subscribe("one")
        await put(log)
        (delivery,) = await fetch(log)
        await delivery.retry(60)
        log = await held.again()
        assert list(await fetch(log, timeout=0)) == []
        assert await log.pending("one", SCOPE) == 1

    async def test_no_revision_comes_again_after_the_newest_file_was_replaced(self, held: Opened[FileLog]) -> None:
        given = []
        for _ in range(3):
            given.append(await put(held.now))
            await held.again()
        assert given == sorted(set(given))
