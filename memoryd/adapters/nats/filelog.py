"""The file log on NATS: a key-value bucket whose stream the indexers consume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from memoryd.adapters.nats import names
from memoryd.adapters.nats.bucket import Bucket
from memoryd.adapters.nats.codec import STATE, pack_content, read_state, state_header
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.deliveries import Leases, NatsDelivery
from memoryd.adapters.nats.epochs import resume
from memoryd.adapters.nats.lanes import Lanes, point_to
from memoryd.adapters.nats.offload import offload
from memoryd.adapters.nats.pending import PendingCounter
from memoryd.domain.files import FileKey, FileState, LoggedFile, Revision
from memoryd.domain.names import Scope
from memoryd.domain.sealing import sealed_key
from memoryd.errors import ConflictError, UnavailableError

LEASE_SECONDS = 60.0

_log = structlog.get_logger(__name__)


class NatsFileLog:
    """The port `FileLog`. Several processes use it at once."""

    def __init__(self, bucket: Bucket, known: Revision | None, lease: float) -> None:
        self._bucket = bucket
        self._newest = known  # the newest revision that this process knows of
        self._leases = Leases(bucket, lease)
        self._lanes: dict[str, Lanes] = {}
        self._counters: dict[str, PendingCounter] = {}
        self._resuming = asyncio.Lock()
        self._resumed: tuple[int, int] | None = None
        self._notice: Subscription | None = None

    @classmethod
    async def open(
        cls,
        connection: NatsConnection,
        prefix: str,
        *,
        known: Revision | None = None,
        lease: float = LEASE_SECONDS,
        replicas: int = 1,
    ) -> NatsFileLog:
        """Open or create a log.

        Args:
            connection: to the server.
            prefix: what its bucket's name begins with.
            known: the newest revision that any manifest holds, where this process can know it. A log that has not given
                it was recreated, restored or lost its tail: it begins the next epoch, so that no revision is given
                twice, and delivers every state again. The same is checked after every lost connection.
            lease: seconds after which a state that was not settled is delivered again.
            replicas: servers that keep a new log.
        """
        bucket = Bucket(connection, names.token("bucket", f"{prefix}-files"), replicas=replicas)
        log = cls(bucket, known, lease)
        async with connection.answering():
            log._notice = await connection.client.subscribe(names.epoch_subject(bucket.stream), cb=log._on_epoch)
        await log._ready()
        return log

    async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
        """Keep a state, if the file's last revision is still `expected`.

        Raises ConflictError where it is not, InvalidInputError (TOO_LARGE) where the server does not take so much.
        """
        await self._ready()
        key, changed = names.file_key(state.key), f"{state.key.path} of {state.key.scope} changed in the file log"
        if expected is not None and expected.epoch != self._leases.epoch:
            raise ConflictError(f"{changed} meanwhile: read it again and decide anew")
        packed = await offload(len(state.content or b""), pack_content, state)
        try:
            sequence = await self._bucket.put(
                key,
                packed,
                last=expected.sequence if expected else 0,
                headers={STATE: state_header(state, live=live)},
            )
        except ConflictError as error:
            raise ConflictError(f"{changed} meanwhile: read it again and decide anew") from error
        revision = self._note(sequence)
        if live:
            try:
                await point_to(self._bucket, key, revision)
            except UnavailableError:  # the state is kept: it is delivered all the same, only later
                _log.warning("a live edit may come late", path=state.key.path)
        return revision

    async def get(self, key: FileKey) -> LoggedFile | None:
        """Read the last state with its content."""
        await self._ready()
        entry = await self._bucket.last(names.file_key(key))
        if entry is None:
            return None
        state, _ = await offload(len(entry.data), read_state, key.scope, entry.headers[STATE], entry.data)
        return LoggedFile(replace(state, key=key), self._note(entry.sequence))

    async def seal(self, logged: LoggedFile) -> Revision:
        """Replace the path of a deletion by its hash. Raises ConflictError where it is not the last state."""
        state = FileState.deletion(sealed_key(logged.state.key), logged.state.modified)
        return await self.put(state, expected=logged.revision, live=False)

    async def holds(self, scope: Scope) -> bool:
        """Whether a workspace has a file in the log."""
        await self._ready()
        return await self._bucket.last(f"{names.scope_key(scope)}.*") is not None

    async def scan(self, scope: Scope) -> AsyncIterator[LoggedFile]:
        """Iterate over the last states of a workspace's files, deletions included, without content."""
        await self._ready()
        given: set[str] = set()  # a file that is put again meanwhile comes again, at the end
        async for entry in self._bucket.read(f"{names.scope_key(scope)}.*", headers_only=True):
            if entry.key not in given:
                given.add(entry.key)
                state, _ = read_state(scope, entry.headers[STATE], None)
                yield LoggedFile(state, self._note(entry.sequence))

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have a file in the log."""
        await self._ready()
        return await _scopes(self._bucket)

    async def subscribe(self, consumer: str) -> None:
        """Create a durable consumer that begins with the last state of every file; nothing where it exists."""
        await self._ready()
        await self._lanes_of(consumer).ensure()

    async def unsubscribe(self, consumer: str) -> None:
        """Forget a consumer and all that it has settled; nothing where it does not exist."""
        await self._ready()
        lanes = self._lanes_of(consumer)
        await self.release(consumer)
        for name in (lanes.main, lanes.live):
            await self._bucket.forget(name)
        await self._bucket.purge(names.settled_key(names.EVERY_FILE, consumer))

    async def release(self, consumer: str) -> None:
        """Keep nothing about a consumer in this process any more."""
        self._lanes.pop(consumer, None)
        if counter := self._counters.pop(consumer, None):
            await counter.stop()

    async def fetch(
        self, consumer: str, *, limit: int, timeout: float, live: bool | None = None
    ) -> Sequence[NatsDelivery]:
        """Lease up to `limit` unsettled states, live ones first or alone; wait up to `timeout` seconds for the first.

        A fetch that is cancelled may leave states leased; they come again when the lease is over.
        """
        await self._ready()
        lanes = self._lanes_of(consumer)
        await lanes.ensure()
        deadline = asyncio.get_running_loop().time() + timeout
        taken = await lanes.take(limit, only=live)
        while not taken and (left := deadline - asyncio.get_running_loop().time()) > 0:
            taken = await lanes.wait(limit, left, only=live)
        for delivery in taken:
            self._note(delivery.file.revision.sequence)
        return taken

    async def pending(self, consumer: str, scope: Scope) -> int:
        """Count the states of a workspace that the consumer has not settled: exactly, as of the call."""
        await self._ready()
        return await self._counter_of(consumer).count(scope)

    async def pending_since(self, consumer: str, scope: Scope) -> float:
        """Tell since when the oldest state that the consumer has not settled waits for it, Unix seconds; 0: none."""
        await self._ready()
        return await self._counter_of(consumer).since(scope)

    async def close(self) -> None:
        """Give the leases back and stop counting. The connection stays open."""
        for counter in self._counters.values():
            await counter.stop()
        await self._leases.give_back()
        if self._notice is not None:
            with suppress(nats.errors.Error):  # the connection is closed already
                await self._notice.unsubscribe()
            self._notice = None

    async def _ready(self) -> None:
        """Find out, first and whenever the connection or the bucket was gone, in which epoch the log is."""
        state = (self._bucket.connection.losses, self._bucket.missing)
        if self._resumed == state:
            return
        async with self._resuming:
            state = (self._bucket.connection.losses, self._bucket.missing)
            if self._resumed != state:
                self._leases.epoch = await resume(self._bucket, self._newest)
                self._resumed = state

    async def _on_epoch(self, _notice: Msg) -> None:
        self._resumed = None

    def _lanes_of(self, consumer: str) -> Lanes:
        if consumer not in self._lanes:
            self._lanes[consumer] = Lanes(self._bucket, consumer, self._leases)
        return self._lanes[consumer]

    def _counter_of(self, consumer: str) -> PendingCounter:
        if consumer not in self._counters:
            lanes = self._lanes_of(consumer)
            self._counters[consumer] = PendingCounter(self._bucket, lanes.main, lanes.live)
        return self._counters[consumer]

    def _note(self, sequence: int) -> Revision:
        revision = Revision(self._leases.epoch, sequence)
        self._newest = max(self._newest or revision, revision)
        return revision


async def logged_scopes(connection: NatsConnection, prefix: str) -> Sequence[Scope]:
    """List the workspaces of a log, for who does not use it otherwise. None where there is no log yet."""
    bucket = Bucket(connection, names.token("bucket", f"{prefix}-files"))
    return await _scopes(bucket) if await bucket.exists() else []


async def _scopes(bucket: Bucket) -> Sequence[Scope]:
    return sorted(map(names.scope_named, await bucket.heads(names.EVERY_FILE, names.SCOPE_PARTS)))
