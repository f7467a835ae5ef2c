"""The manifest on SQLite: outlines put by compare-and-set, and views that cost nothing while nothing changes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from memoryd.adapters.codec import decode_outline, encode_outline
from memoryd.adapters.embedded.sqlite import Database, Schema
from memoryd.domain.files import FileKey, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline, WorkspaceView
from memoryd.domain.sealing import merged, sealed, sealed_key
from memoryd.errors import ConflictError

# `entry` is the workspace's sequence at the commit: it grows with every commit, and tells what changed since a view.
_SCHEMA = Schema(
    name="a manifest",
    version=1,
    script="""
        CREATE TABLE scopes (
            tenant TEXT NOT NULL, workspace TEXT NOT NULL, sequence INTEGER NOT NULL,
            PRIMARY KEY (tenant, workspace)
        ) WITHOUT ROWID;
        CREATE TABLE outlines (
            tenant TEXT NOT NULL, workspace TEXT NOT NULL, path TEXT NOT NULL,
            entry INTEGER NOT NULL, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (tenant, workspace, path)
        );
        CREATE UNIQUE INDEX outlines_by_entry ON outlines (tenant, workspace, entry);
        CREATE INDEX outlines_by_revision ON outlines (epoch, sequence)
    """,
    erases=True,
)
_EMPTY = WorkspaceView(sequence=0)


class SqliteManifest:
    """The port `Manifest`."""

    def __init__(self, database: Database, sequences: dict[Scope, int], newest: Revision | None) -> None:
        self.newest_at_open = newest
        self._database = database
        self._sequences = sequences
        self._views: dict[Scope, WorkspaceView] = {}
        self._committed = asyncio.Event()  # replaced by a new one each time

    @classmethod
    async def open(cls, path: Path) -> SqliteManifest:
        """Open or create a manifest. Its `newest_at_open` is the newest revision that it holds, for the file log."""
        database = await Database.open(path, _SCHEMA)
        sequences, newest = await database.run(_load)
        return cls(database, sequences, newest)

    async def outline(self, key: FileKey) -> Outline | None:
        """Read a file's outline, fresh."""
        return await self._database.run(partial(_outline, key=key))

    async def commit(self, outline: Outline) -> Outline:
        """Put an outline if the entry is still `outline.entry` (0: none); returns it with its new entry.

        Raises ConflictError where another commit came first.
        """
        return await self._database.run(partial(_commit, outline=outline), self._notify)

    async def seal(self, outline: Outline) -> None:
        """Replace the path of a tombstone by its hash. Raises ConflictError where another commit came first."""
        tombstone = replace(outline, key=sealed_key(outline.key))
        await self._database.run(partial(_commit, outline=tombstone, was=outline.key.path), self._notify)

    async def view(self, scope: Scope) -> WorkspaceView:
        """Fix the outlines of a workspace: an immutable snapshot, current when the call began.

        The last view is given again while nothing was committed; after that, only what was committed since is read.
        """
        last = self._views.get(scope, _EMPTY)
        if last.sequence == self._sequences.get(scope, 0):
            return last
        sequence, changed = await self._database.run(partial(_changes, scope=scope, after=last.sequence))
        view = WorkspaceView(sequence, MappingProxyType(merged(last.outlines, changed)))
        if sequence > self._views.get(scope, _EMPTY).sequence:
            self._views[scope] = view
        return view

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have an outline."""
        return sorted(self._sequences)

    async def wait(self, scope: Scope, after: int, timeout: float) -> int:
        """Wait until the workspace's sequence is greater than `after`, at most `timeout` seconds; returns it."""
        try:
            async with asyncio.timeout(timeout):
                while self._sequences.get(scope, 0) <= after:
                    await self._committed.wait()
        except TimeoutError:
            pass
        return self._sequences.get(scope, 0)

    async def close(self) -> None:
        """Release the file."""
        await self._database.close()

    def _notify(self, committed: Outline) -> None:
        self._sequences[committed.key.scope] = committed.entry
        self._committed.set()
        self._committed = asyncio.Event()


def _load(connection: sqlite3.Connection) -> tuple[dict[Scope, int], Revision | None]:
    rows = connection.execute("SELECT tenant, workspace, sequence FROM scopes")
    sequences = {Scope(tenant, workspace): sequence for tenant, workspace, sequence in rows}
    newest = connection.execute(
        "SELECT epoch, sequence FROM outlines ORDER BY epoch DESC, sequence DESC LIMIT 1"
    ).fetchone()
    return sequences, Revision(*newest) if newest else None


def _outline(connection: sqlite3.Connection, key: FileKey) -> Outline | None:
    row = connection.execute(
        "SELECT entry, epoch, sequence, body FROM outlines WHERE tenant = ? AND workspace = ? AND path IN (?, ?)",
        (key.scope.tenant, key.scope.workspace, key.path, sealed(key.path)),
    ).fetchone()
    if row is None:
        return None
    entry, epoch, sequence, body = row
    return decode_outline(key, Revision(epoch, sequence), entry, body)


def _commit(connection: sqlite3.Connection, outline: Outline, was: str = "") -> Outline:
    """Put an outline; `was` is the path under which it is, where it is to be sealed."""
    scope, path = outline.key.scope, outline.key.path
    where = (scope.tenant, scope.workspace)
    row = connection.execute(
        "SELECT path, entry FROM outlines WHERE tenant = ? AND workspace = ? AND path IN (?, ?)",
        (*where, was or path, sealed(path)),
    ).fetchone()
    if (row[1] if row else 0) != outline.entry:
        raise ConflictError(
            f"{path} of {scope} was committed by another indexer meanwhile: plan again from its outline"
        )
    (entry,) = connection.execute(
        "INSERT INTO scopes VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET sequence = sequence + 1 RETURNING sequence",
        (scope.tenant, scope.workspace),
    ).fetchone()
    if row and row[0] != path:
        connection.execute("DELETE FROM outlines WHERE tenant = ? AND workspace = ? AND path = ?", (*where, row[0]))
    revision = outline.revision
    connection.execute(
        "INSERT OR REPLACE INTO outlines VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*where, path, entry, revision.epoch, revision.sequence, encode_outline(outline)),
    )
    return replace(outline, entry=entry)


def _changes(connection: sqlite3.Connection, scope: Scope, after: int) -> tuple[int, dict[str, Outline]]:
    names = (scope.tenant, scope.workspace)
    (sequence,) = connection.execute("SELECT sequence FROM scopes WHERE tenant = ? AND workspace = ?", names).fetchone()
    rows = connection.execute(
        "SELECT path, entry, epoch, sequence, body FROM outlines WHERE tenant = ? AND workspace = ? AND entry > ?",
        (*names, after),
    )
    return sequence, {
        path: decode_outline(FileKey(scope, path), Revision(epoch, number), entry, body)
        for path, entry, epoch, number, body in rows
    }
