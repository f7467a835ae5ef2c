"""What is kept of files, and under which revisions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision, Source
from memoryd.domain.sealing import sealed
from memoryd.errors import ConflictError
from memoryd.ports import FileLog
from tests.contract.file_log.steps import NEIGHBOURS, SCOPE, fetch, paths, put, scanned, state
from tests.contract.registry import Opened


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
        assert {file.state.key.path for file in await scanned(log)} == set(names)
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

    async def test_a_scan_gives_many_files_once_each(self, log: FileLog) -> None:
        names = sorted(f"memory/{n:04}.md" for n in range(1_203))
        await asyncio.gather(*(log.put(state(name), expected=None, live=False) for name in reversed(names)))
        found = await scanned(log)
        assert sorted(file.state.key.path for file in found) == names
        assert {file.state.content for file in found} == {None}

    async def test_a_scan_gives_no_file_twice_that_is_put_meanwhile(self, log: FileLog) -> None:
        names = [f"memory/{n:04}.md" for n in range(1_203)]
        await asyncio.gather(*(log.put(state(name), expected=None, live=False) for name in names))
        found: list[str] = []
        async for file in log.scan(SCOPE):
            path = file.state.key.path
            found.append(path)
            await log.put(state(path, "again\n"), expected=file.revision, live=False)
        assert sorted(found) == names


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


class TestSealing:
    async def test_a_sealed_deletion_has_no_path_and_is_found_by_it(self, log: FileLog) -> None:
        await log.subscribe("one")
        revision = await put(log, "gone.md", "secret\n")
        key = FileKey(SCOPE, "gone.md")
        deletion = FileState.deletion(key, 2.5)
        gone = LoggedFile(deletion, await log.put(deletion, expected=revision, live=True))
        with pytest.raises(ConflictError):
            await log.seal(LoggedFile(deletion, revision))
        newest = await log.seal(gone)
        assert newest > gone.revision
        assert [(file.state.key.path, file.revision) for file in await scanned(log)] == [(sealed("gone.md"), newest)]
        assert await log.get(key) == LoggedFile(deletion, newest)
        assert await log.pending("one", SCOPE) == 1
        (delivery,) = await log.fetch("one", limit=10, timeout=10.0)
        assert (delivery.file.state.key.path, delivery.file.state.deleted) == (sealed("gone.md"), True)
        await delivery.ack()
        assert await log.pending("one", SCOPE) == 0

    async def test_who_knows_of_nothing_or_of_what_was_revives_nothing(self, log: FileLog) -> None:
        deletion = FileState.deletion(FileKey(SCOPE, "gone.md"), 2.5)
        gone = LoggedFile(deletion, await log.put(deletion, expected=None, live=True))
        newest = await log.seal(gone)
        for expected in (None, gone.revision):
            with pytest.raises(ConflictError):
                await log.put(state("gone.md"), expected=expected, live=True)
        back = await log.put(state("gone.md"), expected=newest, live=True)
        assert [(file.state.key.path, file.revision) for file in await scanned(log)] == [("gone.md", back)]
