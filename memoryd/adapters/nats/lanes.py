"""How a consumer gets file states: live ones first.

A durable consumer is first in, first out, so an edit would wait behind an import. Therefore a live state gets a
pointer, a key of its own, which a second durable consumer serves first. One of the two alone is responsible for a
state: the main one hands a live state over, by making sure that its pointer exists, and never delivers it itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from nats.aio.msg import Msg

from memoryd.adapters.nats import names
from memoryd.adapters.nats.bucket import Bucket, Entry
from memoryd.adapters.nats.codec import REVISION, STATE, read_state
from memoryd.adapters.nats.deliveries import Leases, NatsDelivery
from memoryd.adapters.nats.offload import offload
from memoryd.adapters.nats.pull import Pull
from memoryd.domain.files import LoggedFile, Revision
from memoryd.errors import ConflictError, UnavailableError

# Compressed content that one fetch may hold in memory. One state is handed out whatever its size.
_FETCH_BYTES = 32 << 20
# Seconds after which a wait looks whether a live state is to be delivered again.
_LOOK_AGAIN = 1.0


async def point_to(bucket: Bucket, key: str, revision: Revision) -> None:
    """Make the pointer to a live state, once; none where a later state of the file has come."""
    headers = {REVISION: revision.token}
    once = f"{key}-{revision.token}"
    with suppress(ConflictError):
        await bucket.put(names.pointer_key(key), b"", last=revision.sequence, of=key, headers=headers, once=once)


class Lanes:
    """The two durable consumers of one name."""

    def __init__(self, bucket: Bucket, consumer: str, leases: Leases) -> None:
        self.main, self.live = names.token("consumer", consumer), f"{consumer}-live"
        self._bucket, self._leases = bucket, leases
        self._ensured: tuple[int, int, int] | None = None

    async def ensure(self) -> None:
        """Create both where they do not exist, or are of an earlier epoch; nothing where that was done before."""
        epoch = self._leases.epoch
        state = (self._bucket.connection.losses, self._bucket.missing, epoch)
        if self._ensured != state:
            for name, pattern in ((self.live, names.EVERY_POINTER), (self.main, names.EVERY_FILE)):
                await self._bucket.durable(name, pattern, lease=self._leases.seconds, epoch=epoch)
            self._ensured = state

    async def take(
        self, limit: int, found: Sequence[NatsDelivery] = (), *, only: bool | None = None
    ) -> list[NatsDelivery]:
        """Lease up to `limit` states that are there, with those `found` before; live ones first.

        `only`: the live ones alone, or the others alone.
        """
        if only is True:
            room = limit - len(found)
            return [*found, *(await self._resolve(await self._pull(self.live, room)) if room else ())]
        live: list[NatsDelivery] = []
        rest = list(found)
        while (room := limit - len(live) - len(rest)) > 0:
            if only is None:
                live += await self._resolve(await self._pull(self.live, room))
            room = limit - len(live) - len(rest)
            messages = await self._pull(self.main, room) if room else []
            kept = await self._keep(messages)
            rest += kept
            if len(kept) == len(messages):  # else some were handed over, and may be served from there now
                break
        return live + rest

    async def wait(self, limit: int, timeout: float, *, only: bool | None = None) -> list[NatsDelivery]:
        """Wait for a first state, and lease it with others that are there; none where the wait was in vain.

        The main consumer sees new live states, too, so one wait is enough. With two, one would have to be ended when
        the other is over, and what was just on its way there would be leased by nobody.
        """
        if only is True:
            first = await self._resolve(await self._pull(self.live, 1, timeout))
        else:
            first = await self._keep(await self._pull(self.main, 1, min(timeout, _LOOK_AGAIN)))
        return await self.take(limit, first, only=only)

    async def _pull(self, consumer: str, batch: int, wait: float = 0.0) -> list[Msg]:
        name = f"{self._bucket.stream}.{consumer}"
        try:
            async with Pull(self._bucket.connection, name, batch=batch, wait=wait, max_bytes=_FETCH_BYTES) as pull:
                return await pull.done()
        except UnavailableError:
            self._ensured = None  # perhaps the consumer is gone
            raise

    async def _resolve(self, pointers: list[Msg]) -> list[NatsDelivery]:
        """Read the states that pointers point to; drop pointers to states that are superseded."""
        return [delivery for delivery in await asyncio.gather(*map(self._resolve_one, pointers)) if delivery]

    async def _resolve_one(self, message: Msg) -> NatsDelivery | None:
        pointer = self._bucket.entry(message)
        entry = await self._bucket.at(Revision.parse(pointer.headers[REVISION]).sequence)
        if entry is None or names.pointer_key(entry.key) != pointer.key:
            await self._leases.answer(message, b"+ACK")
            return None
        file, _ = await self._read(entry)
        return self._leases.hold(self.main, message, file)

    async def _keep(self, messages: list[Msg]) -> list[NatsDelivery]:
        """Read states, and hand live ones over."""
        return [delivery for delivery in await asyncio.gather(*map(self._keep_one, messages)) if delivery]

    async def _keep_one(self, message: Msg) -> NatsDelivery | None:
        entry = self._bucket.entry(message)
        file, live = await self._read(entry)
        if not live:
            return self._leases.hold(self.main, message, file)
        pointer = await self._bucket.last(names.pointer_key(entry.key))
        if pointer is None or Revision.parse(pointer.headers[REVISION]).sequence < entry.sequence:
            await point_to(self._bucket, entry.key, file.revision)
        await self._leases.answer(message, b"+ACK")
        return None

    async def _read(self, entry: Entry) -> tuple[LoggedFile, bool]:
        scope, size = names.scope_of(entry.key), len(entry.data)
        state, live = await offload(size, read_state, scope, entry.headers[STATE], entry.data)
        return LoggedFile(state, Revision(self._leases.epoch, entry.sequence)), live
