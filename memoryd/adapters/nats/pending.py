"""What a consumer has not settled, workspace by workspace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from memoryd.adapters.nats import names
from memoryd.adapters.nats.bucket import Bucket, Entry, Extent, epoch_of
from memoryd.adapters.nats.codec import REVISION
from memoryd.adapters.nats.follower import Follower
from memoryd.domain.files import Revision
from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError


class PendingCounter:
    """Counts from the bucket itself: a state is pending from its put until the consumer's record says it is settled.

    States and records are in one stream, so one order, and a count covers everything up to the call: it is exact. What
    lies before the consumers' acknowledgement floors is settled, so only what follows is read and kept.
    """

    def __init__(self, bucket: Bucket, consumer: str, live_consumer: str) -> None:
        self._bucket, self._consumer, self._live_consumer = bucket, consumer, live_consumer
        self._epoch = self._epoch_at = 0
        self._made = 0.0  # when the consumer was made, Unix seconds
        self._pending: defaultdict[Scope, dict[str, tuple[int, float]]] = defaultdict(dict)  # sequence, when it was put
        self._follower = Follower(bucket, self, headers_only=True)

    async def count(self, scope: Scope) -> int:
        """Count the states of a workspace. Raises UnavailableError where they can't be counted now."""
        return len(await self._of(scope))

    async def since(self, scope: Scope) -> float:
        """Tell since when the oldest of them waits, Unix seconds; 0 where there is none. Raises as `count` does."""
        oldest = min((put for _, put in (await self._of(scope)).values()), default=0.0)
        return max(oldest, self._made) if oldest else 0.0

    async def _of(self, scope: Scope) -> Mapping[str, tuple[int, float]]:
        self._follower.start()
        if not await self._follower.reach(await self._bucket.extent(), self._bucket.connection.timeout):
            raise UnavailableError(
                f"what is pending in {scope} can't be counted: NATS at {self._bucket.connection.where} is slow to tell "
                "of changes; try again"
            )
        return self._pending.get(scope, {})

    async def stop(self) -> None:
        """Count no more."""
        await self._follower.stop()

    async def begin(self, extent: Extent) -> int:
        """Start after the last sequence up to which everything is settled."""
        epoch = await self._bucket.last(names.EPOCH)
        self._epoch, self._epoch_at = (int(epoch.data), epoch.sequence) if epoch else (0, 0)
        self._pending.clear()
        # In this order: a live state is handed over to its pointer before its own message is acknowledged.
        floor = await self._floor(self._consumer)
        info = await self._bucket.consumer(self._consumer)
        self._made = info.created.timestamp() if info is not None and info.created is not None else 0.0
        live = await self._floor(self._live_consumer)
        async for pointer in self._bucket.read(names.EVERY_POINTER, after=live, headers_only=True):
            floor = min(floor, Revision.parse(pointer.headers[REVISION]).sequence - 1)
        return min(floor, extent.last)

    def take(self, entry: Entry) -> None:
        """Apply a state or a record."""
        match entry.key.split("."):
            case [_, _, file]:
                self._pending[names.scope_of(entry.key)][file] = (entry.sequence, entry.put)
            case [_, _, file, "settled", self._consumer]:
                self._settle(names.scope_of(entry.key), file, Revision.parse(entry.headers[REVISION]))
            case [names.EPOCH] if entry.sequence > self._epoch_at:
                self._follower.restart()

    def _settle(self, scope: Scope, file: str, revision: Revision) -> None:
        files = self._pending[scope]
        if revision.epoch == self._epoch and files.get(file, (0, 0.0))[0] <= revision.sequence:
            files.pop(file, None)

    async def _floor(self, consumer: str) -> int:
        info = await self._bucket.consumer(consumer)
        if info is None or epoch_of(info) != self._epoch or info.ack_floor is None:
            return 0
        return info.ack_floor.stream_seq
