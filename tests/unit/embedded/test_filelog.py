from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.domain.files import FileKey, FileState, Revision
from memoryd.domain.names import Scope
from memoryd.errors import DataError

SCOPE = Scope("acme", "main")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "filelog.db"


def state(path: str = "a.md", content: bytes = b"text\n") -> FileState:
    return FileState(FileKey(SCOPE, path), hash="h", content=content, modified=1.0)


class TestEpoch:
    async def test_a_new_log_begins_the_first(self, path: Path) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            assert await log.put(state(), expected=None, live=False) == Revision(1, 1)

    async def test_a_new_log_begins_one_that_no_manifest_knows(self, path: Path) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path, known=Revision(4, 99))
            assert await log.put(state(), expected=None, live=False) == Revision(5, 1)

    @pytest.mark.parametrize("known", [None, Revision(1, 1), Revision(1, 3)], ids=["none", "older", "newest"])
    async def test_a_log_that_lost_nothing_goes_on(self, path: Path, known: Revision | None) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            await log.subscribe("one")
            for name in ("a.md", "b.md", "c.md"):
                await log.put(state(name), expected=None, live=False)
            for delivery in await log.fetch("one", limit=10, timeout=0):
                await delivery.ack()
        async with AsyncExitStack() as stack:
            log = await opened(stack, path, known=known)
            assert await log.pending("one", SCOPE) == 0
            assert await log.put(state("d.md"), expected=None, live=False) == Revision(1, 4)

    @pytest.mark.parametrize("known", [Revision(1, 4), Revision(2, 1)], ids=["lost-its-tail", "is-a-copy-of-before"])
    async def test_a_log_that_is_behind_begins_the_next_and_delivers_all_again(
        self, path: Path, known: Revision
    ) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            await log.subscribe("one")
            before = [await log.put(state(name), expected=None, live=False) for name in ("a.md", "b.md", "c.md")]
            for delivery in await log.fetch("one", limit=10, timeout=0):
                await delivery.ack()
        async with AsyncExitStack() as stack:
            log = await opened(stack, path, known=known)
            deliveries = await log.fetch("one", limit=10, timeout=0)
            assert [d.file.state for d in deliveries] == [state("a.md"), state("b.md"), state("c.md")]
            revisions = [d.file.revision for d in deliveries]
            assert {revision.epoch for revision in revisions} == {known.epoch + 1}
            assert not {revision.sequence for revision in revisions} & {revision.sequence for revision in before}
            newest = await log.put(state("a.md", b"new"), expected=revisions[0], live=False)
            assert newest > max(revisions)
            assert await log.pending("one", SCOPE) == 3


class TestFetch:
    async def test_it_holds_a_bounded_amount_of_content(self, path: Path) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            await log.subscribe("one")
            for name in ("a.md", "b.md", "c.md"):
                await log.put(state(name, bytes(20 << 20)), expected=None, live=False)
            sizes = [len(await log.fetch("one", limit=10, timeout=0)) for _ in range(4)]
            assert sizes == [1, 1, 1, 0]

    async def test_a_retry_waits_an_hour_at_most_also_after_a_clock_went_wrong(self, path: Path) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            await log.subscribe("one")
            await log.put(state(), expected=None, live=False)
            (delivery,) = await log.fetch("one", limit=1, timeout=0)
            await delivery.retry(1e9)
        (due,) = column(path, "SELECT due FROM deliveries")
        column(path, "UPDATE deliveries SET due = due + 1e9 RETURNING due")
        async with AsyncExitStack() as stack:
            await opened(stack, path)
        (after,) = column(path, "SELECT due FROM deliveries")
        assert after == pytest.approx(due, abs=60)

    async def test_a_consumer_that_was_forgotten_begins_anew(self, path: Path) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            await log.subscribe("one")
            await log.put(state(), expected=None, live=False)
            (delivery,) = await log.fetch("one", limit=1, timeout=0)
            await delivery.ack()
            await log.unsubscribe("one")
            await log.unsubscribe("never was")
            await log.put(state("b.md"), expected=None, live=False)
            assert await log.pending("one", SCOPE) == 0
            await log.subscribe("one")
            assert await log.pending("one", SCOPE) == 2

    async def test_a_put_whose_caller_was_cancelled_is_delivered_if_it_is_there(self, path: Path) -> None:
        async with AsyncExitStack() as stack:
            log = await opened(stack, path)
            await log.subscribe("one")
            for n in range(20):
                put = asyncio.create_task(log.put(state(f"{n}.md"), expected=None, live=False))
                for _ in range(n % 4):
                    await asyncio.sleep(0)
                put.cancel()
                await asyncio.wait([put])
                there = [f"{n}.md"] if await log.get(FileKey(SCOPE, f"{n}.md")) else []
                assert [d.file.state.key.path for d in await log.fetch("one", limit=9, timeout=0)] == there


async def test_content_is_compressed(path: Path) -> None:
    async with AsyncExitStack() as stack:
        log = await opened(stack, path)
        await log.put(state(content=b"the same line\n" * 100_000), expected=None, live=False)
    assert path.stat().st_size < 100_000


async def test_a_damaged_file_names_itself(path: Path) -> None:
    path.write_bytes(b"\0" * 9_000)
    with pytest.raises(DataError, match=str(path)):
        await SqliteFileLog.open(path)


async def opened(stack: AsyncExitStack, path: Path, known: Revision | None = None) -> SqliteFileLog:
    log = await SqliteFileLog.open(path, known=known)
    stack.push_async_callback(log.close)
    return log


def column(path: Path, query: str) -> list[float]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(query).fetchall()
        connection.commit()
    finally:
        connection.close()
    return [row[0] for row in rows]
