"""API keys on SQLite."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from memoryd.adapters.embedded.sqlite import Database, Schema
from memoryd.domain.names import is_name
from memoryd.errors import InvalidInputError
from memoryd.ports import Principal

_SCHEMA = Schema(
    name="a key store",
    version=1,
    script="""
        CREATE TABLE keys (
            id TEXT PRIMARY KEY, secret BLOB NOT NULL, tenant TEXT NOT NULL, workspaces TEXT NOT NULL,
            created REAL NOT NULL
        ) WITHOUT ROWID
    """,
)
_PREFIX = "mk"
_PARTS = 3


class SqliteKeyStore:
    """The port `KeyStore`. A key is `mk_<id>_<secret>`.

    Of the secret only the SHA-256 is kept. It is 256 random bits, so nobody can try them all and a slow hash, which is
    for passwords that people choose, would only cost every call its time. Nothing is cached: a look-up is one step in a
    page that SQLite holds in memory, and a revoked key ends at once, whichever process revoked it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: Path) -> SqliteKeyStore:
        """Open or create a key store, a file that only its owner may read."""
        return cls(await Database.open(path, _SCHEMA))

    async def principal(self, key: str) -> Principal | None:
        """Find who a key belongs to; None where it is not known."""
        parts = key.split("_", _PARTS - 1)
        if len(parts) != _PARTS or parts[0] != _PREFIX or not key.isascii():
            return None
        return await self._database.run(partial(_find, key_id=parts[1], secret=_hash(parts[2])))

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """Mint a key, random; it is returned once and never stored.

        Raises InvalidInputError for a name outside the grammar and for no workspace at all.
        """
        for name in (tenant, *sorted(workspaces)):
            if not is_name(name):
                raise InvalidInputError(f"{name!r} can't name a tenant or a workspace: use 1 to 63 of a-z, 0-9 and -")
        if not workspaces:
            raise InvalidInputError("a key must cover a workspace: name at least one")
        key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        row = (key_id, _hash(secret), tenant, " ".join(sorted(workspaces)), time.time())
        await self._database.run(lambda connection: connection.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", row))
        return f"{_PREFIX}_{key_id}_{secret}"

    async def list(self) -> Sequence[Principal]:
        """List all keys, oldest first."""
        return await self._database.run(_all)

    async def revoke(self, key_id: str) -> bool:
        """End a key; whether there was one."""

        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute("DELETE FROM keys WHERE id = ?", (key_id,)).rowcount == 1

        return await self._database.run(work)

    async def close(self) -> None:
        """Release the file."""
        await self._database.close()


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _find(connection: sqlite3.Connection, key_id: str, secret: bytes) -> Principal | None:
    row = connection.execute("SELECT id, tenant, workspaces, secret FROM keys WHERE id = ?", (key_id,)).fetchone()
    return _principal(row) if row and secrets.compare_digest(row[3], secret) else None


def _all(connection: sqlite3.Connection) -> list[Principal]:
    rows = connection.execute("SELECT id, tenant, workspaces FROM keys ORDER BY created, id")
    return [_principal(row) for row in rows]


def _principal(row: tuple[str, ...]) -> Principal:
    return Principal(key_id=row[0], tenant=row[1], workspaces=frozenset(row[2].split(" ")))
