"""API keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a credential belongs to.

    Attributes:
        key_id: names the key in logs; not a secret.
        tenant: the tenant.
        workspaces: the workspaces that the key covers.
    """

    key_id: str
    tenant: str
    workspaces: frozenset[str]


class KeyStore(Protocol):
    """API keys; only their hashes are kept."""

    async def principal(self, key: str) -> Principal | None:
        """Find who a key belongs to; None where it is not known."""
        ...

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """Mint a key, random; it is returned once and never stored."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """End a key at once; whether there was one."""
        ...

    async def revoke_all(self, tenant: str) -> int:
        """End all keys of a tenant at once; how many there were."""
        ...
