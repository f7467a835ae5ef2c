"""API keys on NATS: what every gateway of a deployment knows, whoever minted it."""

from __future__ import annotations

import time

import orjson

from memoryd.adapters import api_keys
from memoryd.adapters.nats import names
from memoryd.adapters.nats.bucket import Bucket
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.errors import ConflictError
from memoryd.ports import Principal


class NatsKeyStore:
    """The port `KeyStore`. Nothing is cached: a look-up is one read, and a revoked key ends at once, everywhere."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._missing = -1

    @classmethod
    async def open(cls, connection: NatsConnection, prefix: str, *, replicas: int = 1) -> NatsKeyStore:
        """Open or create a key store; its bucket's name begins with `prefix`."""
        keys = cls(Bucket(connection, names.token("bucket", f"{prefix}-keys"), replicas=replicas))
        await keys._ready()
        return keys

    async def principal(self, key: str) -> Principal | None:
        """Find who a key belongs to; None where it is not known."""
        parsed = api_keys.parse(key)
        if parsed is None:
            return None
        key_id, digest = parsed
        await self._ready()
        entry = await self._bucket.last(key_id)
        if entry is None or not entry.data:
            return None
        kept = orjson.loads(entry.data)
        if not api_keys.matches(digest, bytes.fromhex(kept["digest"])):
            return None
        return api_keys.principal(key_id, kept["tenant"], kept["workspaces"])

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """Mint a key, random; it is returned once and never stored.

        Raises InvalidInputError for a name outside the grammar and for no workspace at all.
        """
        minted = api_keys.mint(tenant, workspaces)
        kept = {
            "digest": minted.digest.hex(),
            "tenant": tenant,
            "workspaces": api_keys.joined(workspaces),
            "created": time.time(),
        }
        await self._ready()
        await self._bucket.put(minted.key_id, orjson.dumps(kept), last=0)
        return minted.key

    async def revoke(self, key_id: str) -> bool:
        """End a key at once; whether there was one."""
        if not key_id.isalnum():
            return False
        await self._ready()
        while (entry := await self._bucket.last(key_id)) is not None and entry.data:
            try:
                await self._bucket.put(key_id, b"", last=entry.sequence)
            except ConflictError:
                continue  # somebody else has ended it
            return True
        return False

    async def revoke_all(self, tenant: str) -> int:
        """End all keys of a tenant at once; how many there were. Reads every key."""
        await self._ready()
        entries = [entry async for entry in self._bucket.read("*") if entry.data]
        found = [entry.key for entry in entries if orjson.loads(entry.data)["tenant"] == tenant]
        return sum([await self.revoke(key_id) for key_id in found])

    async def close(self) -> None:
        """Nothing to release: the connection stays open."""

    async def _ready(self) -> None:
        """Create the bucket, first and whenever it was found to be gone."""
        missing = self._bucket.missing
        if self._missing != missing:
            await self._bucket.ensure()
            self._missing = missing
