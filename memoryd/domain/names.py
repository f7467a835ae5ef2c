"""Names of tenants and workspaces, and the pair that every stored thing belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The contract's grammar. It has no dot and no wildcard, so names can be joined into keys and subjects.
_NAME = re.compile(r"[a-z0-9-]{1,63}")


def is_name(text: str) -> bool:
    """Whether `text` may name a tenant or a workspace."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """One workspace of one tenant: the filter of every store and every read."""

    tenant: str
    workspace: str

    def __post_init__(self) -> None:
        """Refuse names outside the grammar, wherever they come from."""
        for name in (self.tenant, self.workspace):
            if not is_name(name):
                message = f"{name!r} is not a name: use 1 to 63 of a-z, 0-9 and -"
                raise ValueError(message)

    def __str__(self) -> str:
        """Join both with a slash, for logs."""
        return f"{self.tenant}/{self.workspace}"
