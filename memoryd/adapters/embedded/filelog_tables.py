"""The tables of the file log and the transactions on them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import zstandard

from memoryd.adapters.embedded.sqlite import Schema
from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.sealing import sealed
from memoryd.errors import ConflictError

SCHEMA = Schema(
    name="a file log",
    version=3,
    script="""
        CREATE TABLE log (epoch INTEGER NOT NULL);
        CREATE TABLE consumers (name TEXT PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE files (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL,
            tenant TEXT NOT NULL, workspace TEXT NOT NULL, path TEXT NOT NULL,
            hash TEXT NOT NULL, modified REAL NOT NULL, source TEXT NOT NULL,
            private INTEGER NOT NULL, lossy INTEGER NOT NULL, deleted INTEGER NOT NULL,
            reason TEXT, detail TEXT, content BLOB, evergreen INTEGER NOT NULL DEFAULT 1,
            UNIQUE (tenant, workspace, path)
        );
        CREATE TABLE deliveries (
            consumer TEXT NOT NULL, sequence INTEGER NOT NULL,
            tenant TEXT NOT NULL, workspace TEXT NOT NULL,
            live INTEGER NOT NULL, due REAL NOT NULL DEFAULT 0, leased INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0, since REAL NOT NULL DEFAULT 0,
            PRIMARY KEY (consumer, sequence)
        ) WITHOUT ROWID;
        CREATE INDEX deliveries_in_order ON deliveries (consumer, live DESC, sequence);
        CREATE INDEX deliveries_of_scope ON deliveries (consumer, tenant, workspace);
        CREATE INDEX deliveries_of_state ON deliveries (sequence)
    """,
    upgrades={
        1: "ALTER TABLE files ADD COLUMN evergreen INTEGER NOT NULL DEFAULT 1",
        2: "ALTER TABLE deliveries ADD COLUMN since REAL NOT NULL DEFAULT 0",  # 0: it was not kept yet
    },
    erases=True,
)
LONGEST_DELAY = 3_600.0  # seconds; a retry is not put off for longer
PAGE = 500  # states that a scan reads at once
# Content that one fetch may hold in memory, decompressed. One state is handed out whatever its size.
_FETCH_BYTES = 32 << 20


def resume(connection: sqlite3.Connection, known: Revision | None, now: float) -> int:
    """Take over the log of an earlier process, or begin one; returns the epoch of new revisions.

    A log that has not given the revision `known` was recreated, restored or lost its tail: then the next epoch begins,
    every state gets a new revision, and every consumer gets every state again.
    """
    # Leases of a dead process are free; a clock that was wrong then must not hold a retry back now.
    connection.execute("UPDATE deliveries SET due = 0, leased = 0 WHERE leased")
    connection.execute("UPDATE deliveries SET due = min(due, ?)", (now + LONGEST_DELAY,))
    row = connection.execute("SELECT epoch FROM log").fetchone()
    if row is None:
        epoch = known.epoch + 1 if known else 1
        connection.execute("INSERT INTO log VALUES (?)", (epoch,))
        return epoch
    epoch = int(row[0])
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'files'").fetchone()
    if known is None or known <= Revision(epoch, last):
        return epoch
    epoch = known.epoch + 1
    _begin(connection, epoch, now)
    return epoch


def restored(connection: sqlite3.Connection, now: float) -> int:
    """Begin the next epoch of a log that was restored from a copy: revisions were given that it knows nothing of.

    The epoch is the time, in Unix seconds, so the same copy restored twice gives no revision twice either. Consumers
    are forgotten: what they have built is not in the copy. Returns the epoch.
    """
    (last,) = connection.execute("SELECT coalesce(max(epoch), 0) FROM log").fetchone()
    epoch = max(int(now), int(last) + 1)
    connection.execute("DELETE FROM consumers")
    _begin(connection, epoch, now)
    return epoch


def _begin(connection: sqlite3.Connection, epoch: int, now: float) -> None:
    """Give every state a revision of a new epoch, and deliver it to every consumer."""
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'files'").fetchone()
    connection.execute("UPDATE log SET epoch = ?", (epoch,))
    connection.execute("UPDATE files SET epoch = ?, sequence = sequence + ?", (epoch, last))
    connection.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'files'", (last,))
    connection.execute("DELETE FROM deliveries")
    for (consumer,) in connection.execute("SELECT name FROM consumers").fetchall():
        _deliver_all(connection, consumer, now)


def put(
    connection: sqlite3.Connection,
    epoch: int,
    state: FileState,
    *,
    expected: Revision | None,
    live: bool,
    now: float,
    was: str = "",
) -> Revision:
    """Replace a file's row. It is deleted and inserted, so that AUTOINCREMENT gives a sequence never given before.

    `was` is the path under which the row is, where the new state has it sealed.
    """
    key, scope = state.key, state.key.scope
    row = connection.execute(
        "SELECT epoch, sequence FROM files WHERE tenant = ? AND workspace = ? AND path IN (?, ?)",
        (scope.tenant, scope.workspace, was or key.path, sealed(key.path)),
    ).fetchone()
    last = Revision(*row) if row else None
    if last != expected:
        raise ConflictError(f"{key.path} of {scope} changed in the file log meanwhile: read it again and decide anew")
    if last:
        connection.execute("DELETE FROM files WHERE sequence = ?", (last.sequence,))
        connection.execute("DELETE FROM deliveries WHERE sequence = ?", (last.sequence,))
    problem = state.problem
    content = None if state.content is None else zstandard.compress(state.content)
    cursor = connection.execute(
        "INSERT INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(epoch, scope.tenant, scope.workspace, key.path, state.hash, state.modified, state.source),
            *(
                state.private,
                state.lossy,
                state.deleted,
                problem and problem.reason,
                problem and problem.detail,
                content,
                state.evergreen,
            ),
        ),
    )
    revision = Revision(epoch, cursor.lastrowid or 0)
    connection.execute(
        "INSERT INTO deliveries (consumer, sequence, tenant, workspace, live, since)"
        " SELECT name, ?, ?, ?, ?, ? FROM consumers",
        (revision.sequence, scope.tenant, scope.workspace, live, now),
    )
    return revision


def get(connection: sqlite3.Connection, key: FileKey) -> LoggedFile | None:
    """Read a file's row."""
    row = connection.execute(
        "SELECT * FROM files WHERE tenant = ? AND workspace = ? AND path IN (?, ?)",
        (key.scope.tenant, key.scope.workspace, key.path, sealed(key.path)),
    ).fetchone()
    if row is None:
        return None
    logged = _logged(row)
    return replace(logged, state=replace(logged.state, key=key))


def page(connection: sqlite3.Connection, scope: Scope, after: str) -> list[LoggedFile]:
    """Read the rows of a workspace that follow a path, without content."""
    rows = connection.execute(
        "SELECT sequence, epoch, tenant, workspace, path, hash, modified, source, private, lossy, deleted, reason,"
        " detail, NULL, evergreen FROM files WHERE tenant = ? AND workspace = ? AND path > ? ORDER BY path LIMIT ?",
        (scope.tenant, scope.workspace, after, PAGE),
    )
    return [_logged(row) for row in rows]


def scopes(connection: sqlite3.Connection) -> list[Scope]:
    """List the workspaces of all rows."""
    rows = connection.execute("SELECT DISTINCT tenant, workspace FROM files ORDER BY tenant, workspace")
    return [Scope(*row) for row in rows]


def subscribe(connection: sqlite3.Connection, consumer: str, now: float) -> None:
    """Make a consumer and its deliveries, if there is none of that name."""
    if connection.execute("INSERT OR IGNORE INTO consumers VALUES (?)", (consumer,)).rowcount:
        _deliver_all(connection, consumer, now)


def unsubscribe(connection: sqlite3.Connection, consumer: str) -> None:
    """Remove a consumer and its deliveries."""
    connection.execute("DELETE FROM consumers WHERE name = ?", (consumer,))
    connection.execute("DELETE FROM deliveries WHERE consumer = ?", (consumer,))


def lease(
    connection: sqlite3.Connection, consumer: str, limit: int, *, live: bool | None, now: float, until: float
) -> tuple[Sequence[tuple[LoggedFile, int]], float]:
    """Lease what is due; returns it with its number of deliveries, or else the time at which something will be due.

    `live`: the live states alone, or the others alone.
    """
    kinds = (False, True) if live is None else (live, live)
    taken: list[tuple[LoggedFile, int]] = []
    size = 0
    # The order is that of the index `deliveries_in_order`, so no more rows are read than are taken.
    rows = connection.execute(
        "SELECT files.*, attempts FROM deliveries JOIN files USING (sequence)"
        " WHERE consumer = ? AND live BETWEEN ? AND ? AND due <= ? ORDER BY live DESC, deliveries.sequence LIMIT ?",
        (consumer, *kinds, now, limit),
    )
    for *state, attempts in rows:
        file = _logged(state)
        size += len(file.state.content or b"")
        if taken and size > _FETCH_BYTES:
            break
        taken.append((file, attempts + 1))
    rows.close()
    connection.executemany(
        "UPDATE deliveries SET due = ?, leased = 1, attempts = attempts + 1 WHERE consumer = ? AND sequence = ?",
        [(until, consumer, file.revision.sequence) for file, _ in taken],
    )
    if taken:
        return taken, now
    query = "SELECT min(due) FROM deliveries WHERE consumer = ? AND live BETWEEN ? AND ?"
    (due,) = connection.execute(query, (consumer, *kinds)).fetchone()
    return [], float("inf") if due is None else due


def settle(connection: sqlite3.Connection, consumer: str, sequence: int) -> None:
    """Take a state off a consumer's list."""
    connection.execute("DELETE FROM deliveries WHERE consumer = ? AND sequence = ?", (consumer, sequence))


def postpone(
    connection: sqlite3.Connection, consumer: str, sequence: int, attempt: int, *, due: float, leased: bool
) -> bool:
    """Set when a state is delivered again, if `attempt` is still its last delivery; whether it was."""
    cursor = connection.execute(
        "UPDATE deliveries SET due = ?, leased = ? WHERE consumer = ? AND sequence = ? AND attempts = ?",
        (due, leased, consumer, sequence, attempt),
    )
    return cursor.rowcount > 0


def pending(connection: sqlite3.Connection, consumer: str, scope: Scope) -> int:
    """Count the states of a workspace on a consumer's list."""
    query = "SELECT count(*) FROM deliveries WHERE consumer = ? AND tenant = ? AND workspace = ?"
    return int(connection.execute(query, (consumer, scope.tenant, scope.workspace)).fetchone()[0])


def pending_since(connection: sqlite3.Connection, consumer: str, scope: Scope) -> float:
    """Find since when the oldest state of a workspace is on a consumer's list; 0 where there is none."""
    query = (
        "SELECT coalesce(min(since), 0) FROM deliveries WHERE consumer = ? AND tenant = ? AND workspace = ? AND since"
    )
    return float(connection.execute(query, (consumer, scope.tenant, scope.workspace)).fetchone()[0])


def _deliver_all(connection: sqlite3.Connection, consumer: str, now: float) -> None:
    connection.execute(
        "INSERT INTO deliveries (consumer, sequence, tenant, workspace, live, since)"
        " SELECT ?, sequence, tenant, workspace, 0, ? FROM files",
        (consumer, now),
    )


def _logged(row: Sequence[Any]) -> LoggedFile:
    sequence, epoch, tenant, workspace, path, file_hash, modified, source, private, lossy, deleted, *rest = row
    reason, detail, content, evergreen = rest
    state = FileState(
        key=FileKey(Scope(tenant, workspace), path),
        hash=file_hash,
        content=None if content is None else zstandard.decompress(content),
        modified=modified,
        source=Source(source),
        private=bool(private),
        lossy=bool(lossy),
        deleted=bool(deleted),
        problem=None if reason is None else Problem(reason, detail),
        evergreen=bool(evergreen),
    )
    return LoggedFile(state, Revision(epoch, sequence))
