"""API keys on SQLite."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from memoryd.adapters import api_keys
from memoryd.adapters.embedded.sqlite import Database, Schema
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


class SqliteKeyStore:
    """The port `KeyStore`.

    Nothing is cached: a look-up is one step in a page that SQLite holds in memory, and a revoked key ends at once,
    whichever process revoked it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: Path) -> SqliteKeyStore:
        """Open or create a key store, a file that only its owner may read."""
        return cls(await Database.open(path, _SCHEMA))

    async def principal(self, key: str) -> Principal | None:
        """Find who a key belongs to; None where it is not known."""
        parsed = api_keys.parse(key)
        if parsed is None:
            return None
        key_id, digest = parsed
        return await self._database.run(partial(_find, key_id=key_id, digest=digest))

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """Mint a key, random; it is returned once and never stored.

        Raises InvalidInputError for a name outside the grammar and for no workspace at all.
        """
        minted = api_keys.mint(tenant, workspaces)
        row = (minted.key_id, minted.digest, tenant, api_keys.joined(workspaces), time.time())
        await self._database.run(lambda connection: connection.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", row))
        return minted.key

    async def list(self) -> Sequence[Principal]:
        """List all keys, oldest first."""
        return await self._database.run(_all)

    async def revoke(self, key_id: str) -> bool:
        """End a key; whether there was one."""

        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute("DELETE FROM keys WHERE id = ?", (key_id,)).rowcount == 1

        return await self._database.run(work)

    async def revoke_all(self, tenant: str) -> int:
        """End all keys of a tenant; how many there were."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute("DELETE FROM keys WHERE tenant = ?", (tenant,)).rowcount

        return await self._database.run(work)

    async def close(self) -> None:
        """Release the file."""
        await self._database.close()


def _find(connection: sqlite3.Connection, key_id: str, digest: bytes) -> Principal | None:
    row = connection.execute("SELECT id, tenant, workspaces, secret FROM keys WHERE id = ?", (key_id,)).fetchone()
    return api_keys.principal(*row[:3]) if row and api_keys.matches(digest, row[3]) else None


def _all(connection: sqlite3.Connection) -> list[Principal]:
    rows = connection.execute("SELECT id, tenant, workspaces FROM keys ORDER BY created, id")
    return [api_keys.principal(*row) for row in rows]
