"""Following a bucket: a copy of what it holds in this process, and whether that copy is current."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Protocol

import structlog
from nats.aio.msg import Msg

from memoryd.adapters.nats.bucket import Bucket, Entry, Extent
from memoryd.adapters.nats.pull import Pull
from memoryd.errors import MemorydError

_BATCH = 1000
_WAIT = 10.0  # seconds of one request; then the next one shows whether the consumer still lives
_PAUSE = 0.2  # seconds, at most, between two attempts

_log = structlog.get_logger(__name__)


class Copy(Protocol):
    """What follows."""

    async def begin(self, extent: Extent) -> int:
        """Start anew, for the bucket was never seen or is another one now. Returns after which sequence to follow."""
        ...

    def take(self, entry: Entry) -> None:
        """Apply the next value."""
        ...


class Follower:
    """Feeds a copy with every value of a bucket, in order, without a gap.

    A watch may lag, and after a server's restart it may stand still while it looks alive. So nobody trusts it: who
    reads the copy asks the stream's leader how far the bucket goes, and whether the copy has reached that.
    """

    def __init__(self, bucket: Bucket, copy: Copy, *, headers_only: bool) -> None:
        self.seen = 0
        self._bucket, self._copy, self._headers_only = bucket, copy, headers_only
        self._created = ""
        self._next = 1
        self._pull: Pull | None = None
        self._broken = False
        self._moved = asyncio.Event()  # replaced by a new one each time
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow; nothing where it has begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"following {self._bucket.stream}")

    async def stop(self) -> None:
        """Follow no more."""
        while self._task is not None and not self._task.done():
            # Again and again: before Python 3.12 `wait_for`, which the client uses, can swallow a cancellation.
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_PAUSE)

    def restart(self) -> None:
        """Begin the copy anew."""
        self._created = ""
        self._break()

    async def reach(self, extent: Extent, timeout: float) -> bool:
        """Whether the copy holds all that the bucket held at an extent; waits for it up to `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._covers(extent):
                    await self._moved.wait()
        return self._covers(extent)

    def _covers(self, extent: Extent) -> bool:
        return self._created == extent.created and self.seen >= extent.last

    async def _run(self) -> None:
        while True:
            try:
                await self._bucket.connection.connected()
                await self._follow()
            except MemorydError as error:
                _log.debug("following again", stream=self._bucket.stream, error=str(error))
            await asyncio.sleep(random.uniform(0, _PAUSE))  # noqa: S311  (jitter, no secret)

    async def _follow(self) -> None:
        extent = await self._bucket.extent()
        if self._created != extent.created or self.seen > extent.last:
            self._created = ""
            self.seen = await self._copy.begin(extent)
            self._created = extent.created
            self._announce()
        self._next, self._broken = 1, False
        reader, _ = await self._bucket.reader(">", after=self.seen, headers_only=self._headers_only)
        while not self._broken:
            self._pull = Pull(self._bucket.connection, reader, batch=_BATCH, wait=_WAIT, take=self._take)
            async with self._pull:
                await self._pull.done()

    def _take(self, message: Msg) -> None:
        sequence = message.metadata.sequence
        if sequence.consumer != self._next:
            self._break()
        if self._broken:
            return
        try:
            self._copy.take(self._bucket.entry(message))
        except Exception:
            self._break()
            raise
        self._next += 1
        if not self._broken:  # taking it may have shown that the copy must begin anew
            self.seen = sequence.stream
        self._announce()

    def _break(self) -> None:
        self._broken = True
        if self._pull is not None:
            self._pull.cut()

    def _announce(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
