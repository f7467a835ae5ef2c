"""One SQLite file behind one thread: transactions in order, commits in groups, errors in our own words."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from memoryd.errors import DAMAGED, DataError, MemorydError, ResourceExhaustedError, UnavailableError

T = TypeVar("T")

# Transactions that share one commit, and so one fsync. Bounds how long the first of them waits for the last.
_GROUP = 128
# Nobody else should have the file open (the data directory is locked), so a short wait is for backups and the like.
_LOCK_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Schema:
    """What a file holds.

    Attributes:
        name: for messages.
        version: kept in the file as `user_version`; another one is refused.
        script: statements that make the empty tables.
        upgrades: the statement by which a file of some older version becomes one of the next.
        erases: what is deleted is overwritten, so that it is in no copy of the file.
    """

    name: str
    version: int
    script: str
    upgrades: Mapping[int, str] = field(default_factory=dict)
    erases: bool = False


class _Job:
    """A transaction that waits for its turn."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any], committed: Callable[[Any], None] | None) -> None:
        self.work = work
        self.committed = committed
        self.loop = asyncio.get_running_loop()
        self.future: Future[Any] = Future()
        self.result: Any = None
        self.error: Exception | None = None


class Database:
    """A SQLite file. WAL with synchronous=FULL: what `run` returned survives a power cut."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        self._schema = schema
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"memoryd-{path.stem}")
        self._jobs: deque[_Job] = deque()
        self._closed = False
        self._connection: sqlite3.Connection  # used on the thread only

    @classmethod
    async def open(
        cls, path: Path, schema: Schema, ready: Callable[[sqlite3.Connection], None] | None = None
    ) -> Database:
        """Open or create a file, readable by its owner only; `ready` runs in the transaction that makes the tables.

        Raises DataError where the file is of another format or damaged, UnavailableError where it can't be opened.
        """
        database = cls(path, schema)
        try:
            await asyncio.get_running_loop().run_in_executor(database._thread, database._open, ready)
        except BaseException:
            database._thread.shutdown(wait=False)
            raise
        return database

    async def run(self, work: Callable[[sqlite3.Connection], T], committed: Callable[[T], None] | None = None) -> T:
        """Run `work` in a transaction of its own; it is undone where it raises, durable where this returns.

        `committed` gets the result on the event loop once it is durable, before any caller sees it, and also where this
        caller was cancelled meanwhile.
        """
        if self._closed:
            raise UnavailableError(f"{self.path} is closed: memoryd is shutting down")
        job = _Job(work, committed)
        self._jobs.append(job)
        self._thread.submit(self._work)
        result: T = await asyncio.wrap_future(job.future)
        return result

    async def close(self) -> None:
        """Finish what waits, then close the file. May be called twice."""
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown(wait=False)

    def _open(self, ready: Callable[[sqlite3.Connection], None] | None) -> None:
        try:
            # SQLite gives its -wal and -shm files the mode of the main file.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(self.path, isolation_level=None, timeout=_LOCK_WAIT_SECONDS)
        except (OSError, sqlite3.Error) as error:
            raise UnavailableError(f"can't open {self.path}: check that its folder exists and is writable") from error
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA secure_delete={'ON' if self._schema.erases else 'OFF'}")
            connection.execute("BEGIN IMMEDIATE")
            self._check_format(connection)
            if ready:
                ready(connection)
            connection.execute("COMMIT")
        except (MemorydError, sqlite3.Error) as error:
            connection.close()
            raise self._translated(error) from error
        self._connection = connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            for statement in self._schema.script.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {self._schema.version:d}")
            return
        while (upgrade := self._schema.upgrades.get(version)) is not None:
            connection.execute(upgrade)
            version += 1
            connection.execute(f"PRAGMA user_version = {version:d}")
        if version != self._schema.version:
            raise DataError(
                f"{self.path} has format {version}, but this memoryd reads {self._schema.name} of format "
                f"{self._schema.version}: run the version of memoryd that wrote it, or move the file away",
            )

    def _work(self) -> None:
        """Run up to a group of waiting transactions with one commit, then tell their callers."""
        jobs: list[_Job] = []
        while self._jobs and len(jobs) < _GROUP:
            job = self._jobs.popleft()
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
        if not jobs:
            return
        try:
            self._run_group(jobs)
        except Exception as error:  # noqa: BLE001  (whatever happens, nobody may be left waiting)
            for job in jobs:
                job.error = job.error or error
        for job in jobs:
            if job.error is not None:
                job.future.set_exception(self._translated(job.error))
                continue
            if job.committed is not None and not job.loop.is_closed():
                job.loop.call_soon_threadsafe(job.committed, job.result)
            job.future.set_result(job.result)

    def _run_group(self, jobs: list[_Job]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in jobs:
                connection.execute("SAVEPOINT job")
                try:
                    job.result = job.work(connection)
                except Exception as error:
                    job.error = error
                    if not connection.in_transaction:  # SQLite has undone the whole group, as it does on a full disk
                        raise
                    connection.execute("ROLLBACK TO job")
                connection.execute("RELEASE job")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _translated(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT}:
            return DataError(
                f"{self.path} is damaged or not {self._schema.name}: stop memoryd, then move it away or restore it",
                reason=DAMAGED,
            )
        if code == sqlite3.SQLITE_FULL:
            return ResourceExhaustedError(
                f"no space left to write {self.path}: free some and try again; nothing was lost", reason="DISK_FULL"
            )
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return UnavailableError(f"{self.path} is locked by another program: close that program and try again")
        if code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
            return UnavailableError(
                f"can't read or write {self.path}: check the disk, its free space and the file's permissions"
            )
        return error
