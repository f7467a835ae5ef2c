"""The file log: the last state of every file, and its durable consumers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from memoryd.domain.files import FileKey, FileState, LoggedFile, Revision
from memoryd.domain.names import Scope


class Delivery(Protocol):
    """A file state that a consumer holds under a lease until it is settled."""

    @property
    def file(self) -> LoggedFile:
        """The state, with its content."""
        ...

    @property
    def attempt(self) -> int:
        """How often this state was delivered, from 1."""
        ...

    async def ack(self) -> None:
        """Done. Without effect where a later state of the file has come."""
        ...

    async def retry(self, delay: float) -> None:
        """Deliver again after `delay` seconds."""
        ...

    async def in_progress(self) -> bool:
        """Begin the lease anew: the work takes longer.

        False where the lease has passed on or a later state of the file has come: nothing may be written for this one
        any more. So no write outlives the state that it is for by more than a lease.
        """
        ...


class FileLog(Protocol):
    """The last state of every file; queue, mirror and rebuild source in one."""

    async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
        """Keep a state, if the file's last revision is still `expected` (None: never logged).

        A `live` state (somebody is editing) is delivered before others (imports, scans). The revision is greater than
        every revision given before. Raises ConflictError where `expected` is not the last one.
        """
        ...

    async def get(self, key: FileKey) -> LoggedFile | None:
        """Read the last state with its content."""
        ...

    def scan(self, scope: Scope) -> AsyncIterator[LoggedFile]:
        """Iterate over the last states of a workspace's files, deletions included, without content, in any order.

        Each file comes once; of one that is put meanwhile it may be the state before.
        """
        ...

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have a file in the log."""
        ...

    async def subscribe(self, consumer: str) -> None:
        """Create a durable consumer that begins with the last state of every file; nothing where it exists."""
        ...

    async def unsubscribe(self, consumer: str) -> None:
        """Forget a consumer and all that it has settled; nothing where it does not exist.

        Subscribed again, it begins with the last state of every file.
        """
        ...

    async def fetch(self, consumer: str, *, limit: int, timeout: float, live: bool | None = None) -> Sequence[Delivery]:
        """Lease up to `limit` unsettled states, live ones first; wait up to `timeout` seconds for the first.

        With `live` they are the live ones alone, or the others alone: two who fetch so never wait for each other. Only
        the last state of a file is ever delivered. A lease that is not settled in time is delivered again.
        """
        ...

    async def pending(self, consumer: str, scope: Scope) -> int:
        """Count the states of a workspace that the consumer has not settled."""
        ...

    async def pending_since(self, consumer: str, scope: Scope) -> float:
        """Tell since when the oldest state of a workspace that the consumer has not settled waits for it.

        Unix seconds by the log's clock: when it was put, or when the consumer was made, if that came later. 0 where
        nothing is pending.
        """
        ...

    async def seal(self, logged: LoggedFile) -> Revision:
        """Replace the path of a deletion by its hash (`memoryd.domain.sealing`): a further state, under a new revision.

        Raises ConflictError where `logged` is not the file's last state. `get` by the path finds it as before.
        """
        ...
