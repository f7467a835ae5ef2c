"""The registry of generations on SQLite. The command line may change it beside a running server."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from memoryd.adapters.embedded.sqlite import Database, Schema
from memoryd.adapters.generation_records import (
    decode_generation,
    decode_progress,
    encode_generation,
    encode_progress,
)
from memoryd.domain.generations import Generation, Progress
from memoryd.errors import ConflictError
from memoryd.ports import Current, Registry

# Entries are sequences of the whole registry, so none is given twice, and a record that was removed and put again has
# a later one.
_SCHEMA = Schema(
    name="a registry of generations",
    version=1,
    script="""
        CREATE TABLE registry (
            one INTEGER PRIMARY KEY CHECK (one = 0), sequence INTEGER NOT NULL,
            current TEXT NOT NULL, wanted TEXT NOT NULL, entry INTEGER NOT NULL
        );
        INSERT INTO registry VALUES (0, 0, '', '', 0);
        CREATE TABLE generations (id TEXT PRIMARY KEY, entry INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE progress (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID
    """,
)
_LOOK_AGAIN = 1.0  # seconds after which a wait looks whether another process has changed something


class SqliteGenerations:
    """The port `Generations`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = asyncio.Event()  # replaced by a new one each time

    @classmethod
    async def open(cls, path: Path) -> SqliteGenerations:
        """Open or create a registry."""
        return cls(await Database.open(path, _SCHEMA))

    async def read(self) -> Registry:
        """Read all records, fresh."""
        return await self._database.run(_read)

    async def put(self, generation: Generation) -> Generation:
        """Put a record if it still is at `generation.entry` (0: there is none); returns it with its new entry.

        Raises ConflictError where somebody else has put it meanwhile.
        """
        return await self._database.run(partial(_put, generation=generation), self._notify)

    async def remove(self, generation: Generation) -> None:
        """Remove a record, if it still is at `generation.entry`, with its progress. Raises ConflictError likewise."""
        await self._database.run(partial(_remove, generation=generation), self._notify)

    async def move(self, to: str, *, wanted: str, expected: Current) -> Current:
        """Let another generation answer, if the key still is at `expected.entry`.

        Raises ConflictError where somebody else has moved it meanwhile.
        """
        return await self._database.run(partial(_move, to=to, wanted=wanted, expected=expected), self._notify)

    async def wait(self, after: int, timeout: float) -> int:
        """Wait until the sequence is greater than `after`, at most `timeout` seconds; returns it."""
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            changed = self._changed
            sequence = await self._database.run(_sequence)
            left = deadline - asyncio.get_running_loop().time()
            if sequence > after or left <= 0:
                return sequence
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK_AGAIN)):
                    await changed.wait()

    async def report(self, generation_id: str, progress: Progress) -> None:
        """Tell how far a generation is: the last report stands."""
        row = (generation_id, encode_progress(progress))
        await self._database.run(lambda connection: connection.execute("REPLACE INTO progress VALUES (?, ?)", row))

    async def progress(self, generation_id: str) -> Progress | None:
        """Read the last report; None where there was none."""
        query = "SELECT body FROM progress WHERE id = ?"
        row = await self._database.run(lambda connection: connection.execute(query, (generation_id,)).fetchone())
        return decode_progress(row[0]) if row else None

    async def close(self) -> None:
        """Release the file."""
        await self._database.close()

    def _notify(self, _result: object) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _sequence(connection: sqlite3.Connection) -> int:
    (sequence,) = connection.execute("SELECT sequence FROM registry").fetchone()
    return int(sequence)


def _next(connection: sqlite3.Connection) -> int:
    (sequence,) = connection.execute("UPDATE registry SET sequence = sequence + 1 RETURNING sequence").fetchone()
    return int(sequence)


def _read(connection: sqlite3.Connection) -> Registry:
    sequence, *current = connection.execute("SELECT sequence, current, wanted, entry FROM registry").fetchone()
    rows = connection.execute("SELECT body, entry FROM generations")
    found = sorted((decode_generation(*row) for row in rows), key=lambda each: (each.created, each.id))
    return Registry(Current(*current), tuple(found), sequence)


def _check(connection: sqlite3.Connection, generation: Generation) -> None:
    row = connection.execute("SELECT entry FROM generations WHERE id = ?", (generation.id,)).fetchone()
    if (row[0] if row else 0) != generation.entry:
        raise ConflictError(f"generation {generation.id} was changed by somebody else meanwhile: read it again")


def _put(connection: sqlite3.Connection, generation: Generation) -> Generation:
    _check(connection, generation)
    kept = replace(generation, entry=_next(connection))
    connection.execute("REPLACE INTO generations VALUES (?, ?, ?)", (kept.id, kept.entry, encode_generation(kept)))
    return kept


def _remove(connection: sqlite3.Connection, generation: Generation) -> None:
    _check(connection, generation)
    _next(connection)
    connection.execute("DELETE FROM generations WHERE id = ?", (generation.id,))
    connection.execute("DELETE FROM progress WHERE id = ?", (generation.id,))


def _move(connection: sqlite3.Connection, to: str, wanted: str, expected: Current) -> Current:
    (entry,) = connection.execute("SELECT entry FROM registry").fetchone()
    if entry != expected.entry:
        raise ConflictError("another generation was made the current one meanwhile: look again, and decide anew")
    moved = Current(to, wanted, _next(connection))
    connection.execute("UPDATE registry SET current = ?, wanted = ?, entry = ?", (moved.id, moved.wanted, moved.entry))
    return moved
