"""The indexer as an operator sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgeOrder, PurgeReceipt
from memoryd.domain.repairs import Checkup
from memoryd.ports.services import Indexing


class Maintenance(Indexing, Protocol):
    """Looking after the indexes."""

    async def workspaces(self) -> Sequence[Scope]:
        """List the workspaces that anything is known of, of all tenants."""
        ...

    async def check(self, scope: Scope, *, mend: bool, timeout: float) -> Checkup:
        """Compare log, outlines and stores of a workspace, and mend what does not fit, within `timeout` seconds."""
        ...

    async def purge(self, order: PurgeOrder, *, timeout: float) -> PurgeReceipt:
        """Remove for good, as far as that can be done within `timeout` seconds; to be repeated until it is verified.

        Raises NotFoundError where nothing is known of it, PreconditionFailedError where its owner would put it again:
        the file is still in its folder (STILL_THERE), the workspace is still served (STILL_SERVED).
        """
        ...

    async def unblock(self, key: FileKey, *, timeout: float) -> bool:
        """Take a file off the block list; whether it was on it. Its owner puts it again if it is in its folder."""
        ...
