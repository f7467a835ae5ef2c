"""The registry of generations on NATS: a bucket with a key for each record, and the key `current`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import orjson

from memoryd.adapters.generation_records import (
    decode_generation,
    decode_progress,
    encode_generation,
    encode_progress,
)
from memoryd.adapters.nats import names
from memoryd.adapters.nats.bucket import Bucket, Entry, Extent
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.follower import Follower
from memoryd.domain.generations import Generation, Progress
from memoryd.errors import ConflictError
from memoryd.ports import Current, Registry

_CURRENT = "current"
_RECORD, _EVERY_RECORD = "generation.{}", "generation.*"
_PROGRESS = "progress.{}"
_LOOK_AGAIN = 2.0  # seconds after which a wait looks for itself: a watch may lag
_AGAIN = 3  # times that a registry is read again that changed while it was read


class NatsGenerations:
    """The port `Generations`. A removed record is an empty value: a late compare-and-set can't bring it back."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._missing = -1
        self._moved = asyncio.Event()  # replaced by a new one each time
        self._follower = Follower(bucket, self, headers_only=True)

    @classmethod
    async def open(cls, connection: NatsConnection, prefix: str, *, replicas: int = 1) -> NatsGenerations:
        """Open or create a registry; its bucket's name begins with `prefix`."""
        registry = cls(Bucket(connection, names.token("bucket", f"{prefix}-generations"), replicas=replicas))
        await registry._ready()
        return registry

    async def read(self) -> Registry:
        """Read all records, fresh."""
        registry = await self._read()
        for _ in range(_AGAIN):
            if not registry.current.id or registry.get(registry.current.id):
                break
            registry = await self._read()
        return registry

    async def put(self, generation: Generation) -> Generation:
        """Put a record if it still is at `generation.entry` (0: there is none); returns it with its new entry.

        Raises ConflictError where somebody else has put it meanwhile.
        """
        last = generation.entry
        if last == 0 and (removed := await self._last(_RECORD.format(generation.id))) is not None and not removed.data:
            last = removed.sequence
        sequence = await self._put(_RECORD.format(generation.id), encode_generation(generation), last, generation.id)
        return replace(generation, entry=sequence)

    async def remove(self, generation: Generation) -> None:
        """Remove a record, if it still is at `generation.entry`, with its progress. Raises ConflictError likewise."""
        await self._put(_RECORD.format(generation.id), b"", generation.entry, generation.id)
        await self._replace(_PROGRESS.format(generation.id), b"")

    async def move(self, to: str, *, wanted: str, expected: Current) -> Current:
        """Let another generation answer, if the key still is at `expected.entry`.

        Raises ConflictError where somebody else has moved it meanwhile.
        """
        await self._ready()
        try:
            sequence = await self._bucket.put(_CURRENT, orjson.dumps([to, wanted]), last=expected.entry)
        except ConflictError as error:
            raise ConflictError(
                "another generation was made the current one meanwhile: look again, and decide anew"
            ) from error
        return Current(to, wanted, sequence)

    async def wait(self, after: int, timeout: float) -> int:
        """Wait until the sequence is greater than `after`, at most `timeout` seconds; returns it."""
        self._follower.start()
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            moved = self._moved
            await self._ready()
            sequence = (await self._bucket.extent()).last
            left = deadline - asyncio.get_running_loop().time()
            if sequence > after or left <= 0:
                return sequence
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK_AGAIN)):
                    await moved.wait()

    async def report(self, generation_id: str, progress: Progress) -> None:
        """Tell how far a generation is: the last report stands."""
        await self._replace(_PROGRESS.format(generation_id), encode_progress(progress))

    async def progress(self, generation_id: str) -> Progress | None:
        """Read the last report; None where there was none."""
        entry = await self._last(_PROGRESS.format(names.token("generation", generation_id)))
        return decode_progress(entry.data) if entry and entry.data else None

    async def close(self) -> None:
        """Follow no more. The connection stays open."""
        await self._follower.stop()

    async def begin(self, extent: Extent) -> int:
        """Follow from now on."""
        self.take(None)
        return extent.last

    def take(self, _entry: Entry | None) -> None:
        """Wake who waits; what has changed is read."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def _read(self) -> Registry:
        await self._ready()
        sequence = (await self._bucket.extent()).last
        entry = await self._bucket.last(_CURRENT)
        current = Current()
        if entry is not None:
            to, wanted = orjson.loads(entry.data)
            current = Current(to, wanted, entry.sequence)
        records = self._bucket.read(_EVERY_RECORD)
        found = [decode_generation(record.data, record.sequence) async for record in records if record.data]
        found.sort(key=lambda each: (each.created, each.id))
        return Registry(current, tuple(found), sequence)

    async def _last(self, key: str) -> Entry | None:
        await self._ready()
        return await self._bucket.last(key)

    async def _put(self, key: str, data: bytes, last: int, generation_id: str) -> int:
        await self._ready()
        try:
            return await self._bucket.put(key, data, last=last)
        except ConflictError as error:
            raise ConflictError(
                f"generation {generation_id} was changed by somebody else meanwhile: read it again"
            ) from error

    async def _replace(self, key: str, data: bytes) -> None:
        """Put a value whatever is there; where somebody else does so at the same time, theirs is as good."""
        last = await self._last(key)
        with suppress(ConflictError):
            await self._bucket.put(key, data, last=last.sequence if last else 0)

    async def _ready(self) -> None:
        """Create the bucket, first and whenever it was found to be gone."""
        missing = self._bucket.missing
        if self._missing != missing:
            await self._bucket.ensure()
            self._missing = missing
