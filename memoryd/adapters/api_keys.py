"""What an API key is: `mk_<id>_<secret>`, the same in every key store.

Of the secret only the SHA-256 is kept. It is 256 random bits, so nobody can try them all, and a slow hash, which is for
passwords that people choose, would only cost every call its time.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from memoryd.domain.names import is_name
from memoryd.errors import InvalidInputError
from memoryd.ports import Principal

_PREFIX = "mk"
_PARTS = 3


@dataclass(frozen=True, slots=True)
class Minted:
    """A new key: what its holder gets, and what is kept."""

    key: str
    key_id: str
    digest: bytes


def mint(tenant: str, workspaces: frozenset[str]) -> Minted:
    """Make a random key. Raises InvalidInputError for a name outside the grammar and for no workspace at all."""
    for name in (tenant, *sorted(workspaces)):
        if not is_name(name):
            raise InvalidInputError(f"{name!r} can't name a tenant or a workspace: use 1 to 63 of a-z, 0-9 and -")
    if not workspaces:
        raise InvalidInputError("a key must cover a workspace: name at least one")
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return Minted(f"{_PREFIX}_{key_id}_{secret}", key_id, _digest(secret))


def parse(key: str) -> tuple[str, bytes] | None:
    """Read the id and the secret's digest off a key; None where it can't be one."""
    parts = key.split("_", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != _PREFIX or not (key.isascii() and parts[1].isalnum()):
        return None
    return parts[1], _digest(parts[2])


def matches(digest: bytes, kept: bytes) -> bool:
    """Compare digests, in a time that tells nothing."""
    return secrets.compare_digest(digest, kept)


def principal(key_id: str, tenant: str, workspaces: str) -> Principal:
    """Make a principal of what is kept: the workspaces are separated by blanks."""
    return Principal(key_id=key_id, tenant=tenant, workspaces=frozenset(workspaces.split(" ")))


def joined(workspaces: frozenset[str]) -> str:
    """Write workspaces as they are kept."""
    return " ".join(sorted(workspaces))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
