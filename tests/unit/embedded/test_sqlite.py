from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.adapters.embedded.sqlite import Database, Schema
from memoryd.errors import DataError, ResourceExhaustedError, UnavailableError

SCHEMA = Schema(
    "notes", 7, "CREATE TABLE notes (id INTEGER PRIMARY KEY, body BLOB); CREATE INDEX bodies ON notes (body)"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    database = await Database.open(path, SCHEMA)
    yield database
    await database.close()


def insert(connection: sqlite3.Connection, size: int = 1) -> int:
    return connection.execute("INSERT INTO notes (body) VALUES (randomblob(?))", (size,)).lastrowid or 0


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


async def reopened_count(path: Path) -> int:
    database = await Database.open(path, SCHEMA)
    try:
        return await database.run(count)
    finally:
        await database.close()


class TestTransactions:
    async def test_one_that_fails_is_undone_and_its_neighbours_are_not(self, database: Database) -> None:
        def fails(connection: sqlite3.Connection) -> int:
            insert(connection)
            raise KeyError("mine")

        results = await asyncio.gather(
            *(database.run(fails if n % 3 == 0 else insert) for n in range(30)), return_exceptions=True
        )
        assert [isinstance(result, KeyError) for result in results] == [n % 3 == 0 for n in range(30)]
        assert await database.run(count) == 20

    async def test_they_run_in_the_order_of_the_calls(self, database: Database) -> None:
        results = await asyncio.gather(*(database.run(insert) for _ in range(300)))
        assert results == list(range(1, 301))

    async def test_the_loop_hears_of_a_commit_before_its_caller_does(self, database: Database) -> None:
        heard: list[int] = []
        assert await database.run(insert, heard.append) == 1
        assert heard == [1]

    async def test_the_loop_hears_of_a_commit_whose_caller_was_cancelled(self, database: Database) -> None:
        heard: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(connection: sqlite3.Connection) -> int:
            loop.call_soon_threadsafe(begun.set)
            return insert(connection)

        task = asyncio.create_task(database.run(work, heard.set_result))
        await begun.wait()
        task.cancel()
        assert await asyncio.wait_for(heard, 10) == 1
        assert await database.run(count) == 1

    async def test_what_waits_is_finished_before_closing(self, path: Path) -> None:
        database = await Database.open(path, SCHEMA)
        inserts = [asyncio.create_task(database.run(insert)) for _ in range(300)]
        await asyncio.sleep(0)
        await database.close()
        await database.close()
        assert await asyncio.gather(*inserts) == list(range(1, 301))
        with pytest.raises(UnavailableError, match="closed"):
            await database.run(count)
        assert await reopened_count(path) == 300


class TestOpening:
    async def test_only_the_owner_may_read(self, database: Database, path: Path) -> None:
        await database.run(insert)
        assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {
            "notes.db": 0o600,
            "notes.db-wal": 0o600,
            "notes.db-shm": 0o600,
        }

    async def test_a_file_that_is_no_database_is_refused_and_left_alone(self, path: Path) -> None:
        path.write_bytes(b"# my notes\n" * 500)
        with pytest.raises(DataError, match=str(path)):
            await Database.open(path, SCHEMA)
        assert path.read_bytes() == b"# my notes\n" * 500

    @pytest.mark.parametrize("version", [0, 6, 8])
    async def test_another_format_is_refused_and_left_alone(self, path: Path, version: int) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE other (x)")
            connection.execute(f"PRAGMA user_version = {version:d}")
        connection.close()
        with pytest.raises(DataError, match=f"{path} has format {version}.* format 7"):
            await Database.open(path, SCHEMA)
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]
        connection.close()

    async def test_an_older_format_is_brought_up_step_by_step(self, path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE notes (text TEXT)")
            connection.execute("INSERT INTO notes VALUES ('kept')")
            connection.execute("PRAGMA user_version = 5")
        connection.close()
        upgrades = {5: "ALTER TABLE notes ADD COLUMN day TEXT DEFAULT 'x'", 6: "ALTER TABLE notes RENAME TO pages"}
        database = await Database.open(path, replace(SCHEMA, upgrades=upgrades))
        assert await database.run(lambda c: c.execute("SELECT * FROM pages").fetchall()) == [("kept", "x")]
        await database.close()
        await (await Database.open(path, replace(SCHEMA, upgrades=upgrades))).close()

    async def test_a_folder_that_does_not_exist(self, tmp_path: Path) -> None:
        with pytest.raises(UnavailableError, match="nowhere"):
            await Database.open(tmp_path / "nowhere" / "notes.db", SCHEMA)

    async def test_tables_and_first_rows_come_together_or_not_at_all(self, path: Path) -> None:
        def fails(connection: sqlite3.Connection) -> None:
            insert(connection)
            raise DataError("not today")

        with pytest.raises(DataError, match="not today"):
            await Database.open(path, SCHEMA, fails)
        assert await reopened_count(path) == 0


class TestTrouble:
    async def test_a_page_that_is_damaged(self, path: Path) -> None:
        database = await Database.open(path, SCHEMA)
        await asyncio.gather(*(database.run(lambda connection: insert(connection, 3_000)) for _ in range(200)))
        await database.close()
        with path.open("r+b") as file:
            for page in range(2, path.stat().st_size // 4096, 2):
                file.seek(page * 4096)
                file.write(b"\xa5" * 4096)
        database = await Database.open(path, SCHEMA)
        try:
            with pytest.raises(DataError, match=f"{path} is damaged"):
                await database.run(lambda connection: connection.execute("SELECT body FROM notes").fetchall())
        finally:
            await database.close()

    async def test_another_program_holds_the_lock(self, database: Database, path: Path) -> None:
        await database.run(insert)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(UnavailableError, match=f"{path} is locked"):
                await database.run(insert)
        finally:
            other.close()
        assert await database.run(insert) == 2

    async def test_no_space_is_left(self, database: Database, path: Path) -> None:
        await database.run(insert)
        (pages,) = await database.run(lambda connection: connection.execute("PRAGMA max_page_count = 10").fetchone())
        assert pages == 10
        results = await asyncio.gather(
            *(database.run(lambda connection: insert(connection, 30_000)) for _ in range(5)), return_exceptions=True
        )
        failed = [result for result in results if isinstance(result, ResourceExhaustedError)]
        assert failed
        assert {error.reason for error in failed} == {"DISK_FULL"}
        assert str(path) in str(failed[0])
        kept = 1 + len(results) - len(failed)
        assert await database.run(count) == kept
        await database.run(lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchone())
        await database.run(lambda connection: insert(connection, 30_000))
        assert await database.run(count) == kept + 1

    async def test_the_system_refuses_to_write(self, path: Path) -> None:
        assert in_child(path, "full") == ["1", "UnavailableError", "1"]
        assert await reopened_count(path) == 1

    async def test_what_was_answered_survives_a_kill(self, path: Path) -> None:
        acknowledged = in_child(path, "kill")
        assert len(acknowledged) >= 50
        assert await reopened_count(path) >= len(acknowledged)


def in_child(path: Path, what: str) -> list[str]:
    """Run `_full` or `_kill` of this module in a process of its own; returns the lines that it printed."""
    command = [sys.executable, "-m", "tests.unit.embedded.test_sqlite", str(path), what]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.split()


async def _full(database: Database) -> None:
    import resource  # noqa: PLC0415  (only here, and only on Unix)

    say(await database.run(insert))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        await database.run(lambda connection: insert(connection, 1_000_000))
    except UnavailableError as error:
        say(type(error).__name__)
    say(await database.run(count))


async def _kill(database: Database) -> None:
    async def work() -> None:
        while True:
            row = await database.run(insert)
            say(row)
            if row >= 50:
                os.kill(os.getpid(), signal.SIGKILL)

    await asyncio.gather(*(work() for _ in range(5)))


def say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


async def main(path: Path, what: str) -> None:
    database = await Database.open(path, SCHEMA)
    await {"full": _full, "kill": _kill}[what](database)
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
