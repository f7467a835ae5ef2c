"""File states that consumers hold under a lease."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from weakref import WeakValueDictionary

from nats.aio.msg import Msg

from memoryd.adapters.nats.bucket import Bucket
from memoryd.adapters.nats.codec import REVISION
from memoryd.adapters.nats.names import file_key, settled_key
from memoryd.domain.files import LoggedFile
from memoryd.errors import ConflictError, MemorydError

LONGEST_DELAY = 3_600.0  # seconds; a retry is not put off for longer
# The server began the lease a little before the message was here.
_USED = 0.9


class Leases:
    """What this process holds.

    Attributes:
        bucket: the file log's.
        seconds: how long a lease is.
        epoch: the file log's; what was delivered in an earlier one can't be settled any more.
    """

    def __init__(self, bucket: Bucket, seconds: float) -> None:
        self.bucket = bucket
        self.seconds = seconds
        self.epoch = 0
        self._newest: WeakValueDictionary[tuple[str, int], NatsDelivery] = WeakValueDictionary()

    def hold(self, consumer: str, message: Msg, file: LoggedFile) -> NatsDelivery:
        """Keep a delivery; one that was held of the same state has lost its lease."""
        delivery = NatsDelivery(self, consumer, message, file)
        self._newest[consumer, file.revision.sequence] = delivery
        return delivery

    def is_newest(self, delivery: NatsDelivery, consumer: str) -> bool:
        """Whether its state was not delivered again to this process."""
        return self._newest.get((consumer, delivery.file.revision.sequence)) is delivery

    async def give_back(self) -> None:
        """Have everything that is still held delivered again at once, as far as the server can be reached."""
        held = [delivery.retry(0) for delivery in list(self._newest.values())]
        for error in await asyncio.gather(*held, return_exceptions=True):
            if isinstance(error, BaseException) and not isinstance(error, MemorydError):
                raise error

    async def answer(self, message: Msg, text: bytes) -> None:
        """Settle a message, and wait until the server has taken note."""
        connection = self.bucket.connection
        async with connection.answering():
            await connection.client.request(message.reply, text, timeout=connection.timeout)

    async def record(self, consumer: str, file: LoggedFile) -> None:
        """Record that a state is settled, unless a later one of its file has come.

        This comes before the acknowledgement: where only that is lost, the state is delivered again, and found old.
        """
        state = file_key(file.state.key)
        headers = {REVISION: file.revision.token}
        key = settled_key(state, consumer)
        with suppress(ConflictError):
            await self.bucket.put(key, b"", last=file.revision.sequence, of=state, headers=headers)


class NatsDelivery:
    """The port's `Delivery`."""

    def __init__(self, leases: Leases, consumer: str, message: Msg, file: LoggedFile) -> None:
        self.file = file
        self.attempt = message.metadata.num_delivered
        self._leases, self._consumer, self._message = leases, consumer, message
        self._settled = False
        self._until = asyncio.get_running_loop().time() + leases.seconds * _USED

    async def ack(self) -> None:
        """Done. Without effect where a later state of the file has come, or another epoch."""
        if self.file.revision.epoch == self._leases.epoch:
            await self._leases.record(self._consumer, self.file)
            await self._leases.answer(self._message, b"+ACK")
            self._settled = True

    async def retry(self, delay: float) -> None:
        """Deliver again after `delay` seconds, at most an hour; without effect where the lease has passed on."""
        if self._is_held():
            wait = json.dumps({"delay": int(min(delay, LONGEST_DELAY) * 1e9)}) if delay > 0 else ""
            await self._leases.answer(self._message, f"-NAK {wait}".rstrip().encode())
            self._settled = True

    async def in_progress(self) -> bool:
        """Begin the lease anew; False where it has passed on, or a later state of the file has come."""
        if not self._is_held():
            return False
        asked = asyncio.get_running_loop().time()
        if await self._leases.bucket.at(self.file.revision.sequence) is None:
            return False
        await self._leases.answer(self._message, b"+WPI")
        self._until = asked + self._leases.seconds * _USED
        return True

    def _is_held(self) -> bool:
        """Whether the lease is still ours, as far as this process can know."""
        return (
            not self._settled
            and self.file.revision.epoch == self._leases.epoch
            and self._leases.is_newest(self, self._consumer)
            and asyncio.get_running_loop().time() < self._until
        )
