"""Purging: what is to be removed for good, and the receipt that says what was."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.domain.names import Scope


@dataclass(frozen=True, slots=True)
class PurgeOrder:
    """What is to be removed: a file, a workspace, or all of a tenant.

    Attributes:
        tenant: whose.
        workspace: which one; empty for all.
        path: which file of the workspace; empty for all.
        block: keep the file from being indexed again, though it is still in its folder.
    """

    tenant: str
    workspace: str = ""
    path: str = ""
    block: bool = False


@dataclass(frozen=True, slots=True)
class PurgedFile:
    """A file whose text is removed, and how many of its chunks each store had to erase."""

    scope: Scope
    path: str
    vectors: int = 0
    texts: int = 0


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """What one call has removed.

    Attributes:
        files: what it was about; chunks that an earlier call has erased are not counted again.
        verified: the stores, the log and the outlines were read, after the time until which an indexer could still
            have been writing an older state, and hold nothing of it.
        again_in: seconds after which the same order is to be given again, where it is not verified.
        waits_for: what for, for a person.
        keys: API keys that this call has revoked: those of a tenant that is purged.
    """

    files: tuple[PurgedFile, ...]
    verified: bool
    again_in: float = 0.0
    waits_for: str = ""
    keys: int = 0
