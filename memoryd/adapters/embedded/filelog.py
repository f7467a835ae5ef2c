"""The file log on SQLite: last states, and for every consumer the states that it has yet to settle."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

from memoryd.adapters.embedded import filelog_tables as tables
from memoryd.adapters.embedded.sqlite import Database
from memoryd.domain.files import FileKey, FileState, LoggedFile, Revision
from memoryd.domain.names import Scope
from memoryd.domain.sealing import sealed_key

LEASE_SECONDS = 60.0


class SqliteDelivery:
    """A leased state."""

    def __init__(self, log: SqliteFileLog, consumer: str, file: LoggedFile, attempt: int) -> None:
        self.file = file
        self.attempt = attempt
        self._log = log
        self._consumer = consumer

    async def ack(self) -> None:
        """Done. Without effect where a later state of the file has come."""
        await self._log.settle(self._consumer, self.file.revision)

    async def retry(self, delay: float) -> None:
        """Deliver again after `delay` seconds, at most an hour; without effect where the lease has passed on."""
        delay = min(delay, tables.LONGEST_DELAY)
        await self._log.postpone(self._consumer, self.file.revision, self.attempt, delay, leased=False)

    async def in_progress(self) -> bool:
        """Begin the lease anew; False where it has passed on, or a later state of the file has come."""
        return await self._log.postpone(self._consumer, self.file.revision, self.attempt, self._log.lease, leased=True)


class SqliteFileLog:
    """The port `FileLog`. Content is compressed with zstd."""

    def __init__(self, database: Database, epoch: int, lease: float, clock: float) -> None:
        self.lease = lease
        self._database = database
        self._epoch = epoch
        self._clock = clock
        self._arrived = asyncio.Event()  # replaced by a new one each time
        self._arrived_live = asyncio.Event()  # likewise; not set where what came is not live
        self._pending: dict[tuple[str, Scope], int] = {}
        self._changes = 0

    @classmethod
    async def open(cls, path: Path, *, known: Revision | None = None, lease: float = LEASE_SECONDS) -> SqliteFileLog:
        """Open or create a log.

        Args:
            path: the file.
            known: the newest revision that any manifest holds. A log that has not given it was recreated, restored or
                lost its tail: it begins the next epoch, so that no revision is given twice, and delivers every state
                again.
            lease: seconds after which a state that was not settled is delivered again.
        """
        # Wall time, for delays outlive the process; taken once, so that setting the clock meanwhile moves nothing.
        clock = time.time() - time.monotonic()
        epoch = 0

        def ready(connection: sqlite3.Connection) -> None:
            nonlocal epoch
            epoch = tables.resume(connection, known, clock + time.monotonic())

        database = await Database.open(path, tables.SCHEMA, ready)
        return cls(database, epoch, lease, clock)

    async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
        """Keep a state, if the file's last revision is still `expected`. Raises ConflictError where it is not."""
        work = partial(tables.put, epoch=self._epoch, state=state, expected=expected, live=live, now=self._now())
        return await self._database.run(work, self._notify if live else self._notify_of_import)

    async def get(self, key: FileKey) -> LoggedFile | None:
        """Read the last state with its content."""
        return await self._database.run(partial(tables.get, key=key))

    async def seal(self, logged: LoggedFile) -> Revision:
        """Replace the path of a deletion by its hash. Raises ConflictError where it is not the last state."""
        key = logged.state.key
        state = FileState.deletion(sealed_key(key), logged.state.modified)
        work = partial(
            tables.put,
            epoch=self._epoch,
            state=state,
            expected=logged.revision,
            live=False,
            now=self._now(),
            was=key.path,
        )
        return await self._database.run(work, self._notify)

    async def scan(self, scope: Scope) -> AsyncIterator[LoggedFile]:
        """Iterate over the last states of a workspace's files, deletions included, without content."""
        after = ""
        while page := await self._database.run(partial(tables.page, scope=scope, after=after)):
            for file in page:
                yield file
            after = page[-1].state.key.path

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have a file in the log."""
        return await self._database.run(tables.scopes)

    async def subscribe(self, consumer: str) -> None:
        """Create a durable consumer that begins with the last state of every file; nothing where it exists."""
        await self._database.run(partial(tables.subscribe, consumer=consumer, now=self._now()), self._notify)

    async def unsubscribe(self, consumer: str) -> None:
        """Forget a consumer, whose generation was dropped; nothing where it does not exist."""
        await self._database.run(partial(tables.unsubscribe, consumer=consumer), self._forget_pending)

    async def fetch(
        self,
        consumer: str,
        *,
        limit: int,
        timeout: float,
        live: bool | None = None,
    ) -> Sequence[SqliteDelivery]:
        """Lease up to `limit` unsettled states, live ones first or alone; wait up to `timeout` seconds for the first.

        A fetch that is cancelled may leave states leased; they come again when the lease is over.
        """
        deadline = self._now() + timeout
        while True:
            arrived, now = self._arrived_live if live else self._arrived, self._now()
            work = partial(tables.lease, consumer=consumer, limit=limit, live=live, now=now, until=now + self.lease)
            taken, due = await self._database.run(work)
            wait = min(due, deadline) - self._now()
            if taken or self._now() >= deadline:
                return [SqliteDelivery(self, consumer, file, attempt) for file, attempt in taken]
            try:
                async with asyncio.timeout(max(wait, 0)):
                    await arrived.wait()
            except TimeoutError:
                pass  # a lease or a delay is over, or the deadline has come: look again

    async def pending(self, consumer: str, scope: Scope) -> int:
        """Count the states of a workspace that the consumer has not settled. Costs nothing while nothing changes."""
        if (count := self._pending.get((consumer, scope))) is not None:
            return count
        changes = self._changes
        count = await self._database.run(partial(tables.pending, consumer=consumer, scope=scope))
        if changes == self._changes:
            self._pending[consumer, scope] = count
        return count

    async def pending_since(self, consumer: str, scope: Scope) -> float:
        """Tell since when the oldest state that the consumer has not settled waits for it, Unix seconds; 0: none."""
        return await self._database.run(partial(tables.pending_since, consumer=consumer, scope=scope))

    async def settle(self, consumer: str, revision: Revision) -> None:
        """Take a state off a consumer's list."""
        work = partial(tables.settle, consumer=consumer, sequence=revision.sequence)
        await self._database.run(work, self._forget_pending)

    async def postpone(self, consumer: str, revision: Revision, attempt: int, delay: float, *, leased: bool) -> bool:
        """Deliver a state again after `delay` seconds, if `attempt` is still its last delivery; whether it was."""
        sequence, due = revision.sequence, self._now() + delay
        work = partial(tables.postpone, consumer=consumer, sequence=sequence, attempt=attempt, due=due, leased=leased)
        return await self._database.run(work, self._notify)

    async def close(self) -> None:
        """Release the file."""
        await self._database.close()

    def _now(self) -> float:
        return self._clock + time.monotonic()

    def _forget_pending(self, _result: object) -> None:
        self._pending.clear()
        self._changes += 1

    def _notify(self, _result: object) -> None:
        self._notify_of_import(_result)
        self._arrived_live.set()
        self._arrived_live = asyncio.Event()

    def _notify_of_import(self, _result: object) -> None:
        self._forget_pending(_result)
        self._arrived.set()
        self._arrived = asyncio.Event()


async def logged_scopes(path: Path) -> Sequence[Scope]:
    """List the workspaces of a log that another process may use now: its leases stay. None where there is no log."""
    if not await asyncio.to_thread(path.exists):
        return []
    database = await Database.open(path, tables.SCHEMA)
    try:
        return await database.run(tables.scopes)
    finally:
        await database.close()
