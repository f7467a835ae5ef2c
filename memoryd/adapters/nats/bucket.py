"""A key-value bucket of history 1: compare-and-set, reads that the stream's leader answers, and replay."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from nats.aio.msg import Msg
from nats.js import api

from memoryd.adapters.nats.connection import STREAM_NOT_FOUND, NatsConnection, RefusedError
from memoryd.adapters.nats.offload import offload
from memoryd.adapters.nats.pull import Pull
from memoryd.errors import ConflictError, InvalidInputError, ResourceExhaustedError

_NO_MESSAGE, _NAME_IN_USE, _NO_CONSUMER = 10037, 10058, 10014
_WRONG_SEQUENCE = (10071, 10164)
_STORAGE_FULL = (10023, 10047, 10077)
_MESSAGE_TOO_LARGE = 10054
_PAGE = 500  # messages asked for at once in a replay
_HEADROOM = 1024  # bytes of headers that the client adds to ours
_READER_IDLE = 15.0  # seconds after which the server forgets a reader that is gone


@dataclass(frozen=True, slots=True)
class Entry:
    """What the bucket holds under a key. `put`: when it was put, Unix seconds; 0 where no consumer has given it."""

    key: str
    sequence: int
    data: bytes
    headers: Mapping[str, str]
    put: float = 0.0


@dataclass(frozen=True, slots=True)
class Extent:
    """Which stream it is, and how far it goes."""

    created: str
    last: int


class Bucket:
    """A bucket by name. It is made where it does not exist, by `ensure`."""

    def __init__(self, connection: NatsConnection, name: str, *, replicas: int = 1) -> None:
        self.connection = connection
        self.stream = f"KV_{name}"
        self.missing = 0  # how often it was found to be gone
        self._name, self._replicas = name, replicas
        self._prefix = f"$KV.{name}."

    async def exists(self) -> bool:
        """Whether there is such a bucket."""
        try:
            await self.extent()
        except RefusedError as error:
            if error.code != STREAM_NOT_FOUND:
                raise
            return False
        return True

    async def ensure(self) -> Extent:
        """Create the bucket where it does not exist."""
        if await self.exists():
            return await self.extent()
        try:
            async with self.connection.answering():
                await self.connection.js.create_key_value(bucket=self._name, history=1, replicas=self._replicas)
        except RefusedError as error:
            if error.code != _NAME_IN_USE:  # else another process was first
                raise
        return await self.extent()

    async def extent(self) -> Extent:
        """Ask how far the bucket goes now."""
        info = await self._ask(f"STREAM.INFO.{self.stream}", {})
        return Extent(info["created"], info["state"]["last_seq"])

    async def put(
        self,
        key: str,
        data: bytes,
        *,
        last: int,
        of: str | None = None,
        headers: Mapping[str, str] | None = None,
        once: str | None = None,
    ) -> int:
        """Put a value if the last sequence of `of` (by default the key itself) is still `last`, 0 for none.

        Puts of the same name `once` within two minutes are one put. Returns the value's sequence. Raises ConflictError,
        InvalidInputError (TOO_LARGE) and ResourceExhaustedError.
        """
        sent = {**(headers or {}), api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last)}
        if of is not None:
            sent["Nats-Expected-Last-Subject-Sequence-Subject"] = self._prefix + of
        if once is not None:
            sent[api.Header.MSG_ID.value] = once
        size = len(data) + sum(len(name) + len(value) for name, value in sent.items()) + _HEADROOM
        if size > self.connection.client.max_payload:
            raise self._too_large(len(data))
        try:
            async with self.connection.answering():
                ack = await self.connection.js.publish(self._prefix + key, data, headers=sent)
        except RefusedError as error:
            self._note(error)
            if error.code in _WRONG_SEQUENCE:
                raise ConflictError(f"{key} changed meanwhile: read it again and decide anew") from error
            if error.code in _STORAGE_FULL:
                raise ResourceExhaustedError(
                    f"NATS at {self.connection.where} has no room left: free some or raise its limits",
                    reason="DISK_FULL",
                ) from error
            if error.code == _MESSAGE_TOO_LARGE:
                raise self._too_large(len(data)) from error
            raise
        return ack.seq

    async def last(self, key: str) -> Entry | None:
        """Read the value of a key."""
        return await self._entry({"last_by_subj": self._prefix + key})

    async def at(self, sequence: int) -> Entry | None:
        """Read the value that was put with a sequence; None where its key has another one since."""
        return await self._entry({"seq": sequence})

    async def heads(self, pattern: str, parts: int) -> set[str]:
        """List what the keys that match begin with, so many parts of each. Reads all the keys, a page at a time."""
        found: set[str] = set()
        read = 0
        while True:
            request = {"subjects_filter": self._prefix + pattern, "offset": read}
            info = await self._ask(f"STREAM.INFO.{self.stream}", request)
            page = info["state"].get("subjects") or {}
            found.update(".".join(subject.removeprefix(self._prefix).split(".", parts)[:parts]) for subject in page)
            read += len(page)
            if not page or read >= info.get("total", 0):
                return found

    async def read(self, pattern: str, *, after: int = 0, headers_only: bool = False) -> AsyncIterator[Entry]:
        """Iterate over the values with a sequence above `after` whose keys match, in the order of their sequences."""
        reader, left = await self.reader(pattern, after=after, headers_only=headers_only)
        while left:
            async with Pull(self.connection, reader, batch=min(left, _PAGE)) as pull:
                messages = await pull.done()
            if not messages:
                return  # the rest was put again meanwhile
            for message in messages:
                yield self.entry(message)
            left = messages[-1].metadata.num_pending

    async def reader(self, pattern: str, *, after: int, headers_only: bool) -> tuple[str, int]:
        """Make a consumer that replays and then follows, and ends by itself; returns its name and what it replays."""
        config = api.ConsumerConfig(
            name=self.connection.client.new_inbox().rpartition(".")[2],
            filter_subject=self._prefix + pattern,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=api.AckPolicy.NONE,
            headers_only=headers_only,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=_READER_IDLE,
        )
        info = await self._add_consumer(config)
        return f"{self.stream}.{info.name}", info.num_pending or 0

    async def durable(self, name: str, pattern: str, *, lease: float, epoch: int) -> None:
        """Create a durable consumer that begins with the last value of every key; make it anew for a new epoch."""
        config = api.ConsumerConfig(
            durable_name=name,
            name=name,
            filter_subject=self._prefix + pattern,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=lease,
            max_ack_pending=-1,
            max_deliver=-1,
            metadata={"memoryd-epoch": str(epoch)},
        )
        found = await self.consumer(name)
        if found is not None and epoch_of(found) != epoch:
            async with self.connection.answering():
                await self.connection.js.delete_consumer(self.stream, name)
        await self._add_consumer(config)

    async def consumer(self, name: str) -> api.ConsumerInfo | None:
        """Describe a durable consumer."""
        try:
            async with self.connection.answering():
                found: api.ConsumerInfo = await self.connection.js.consumer_info(self.stream, name)
                return found
        except RefusedError as error:
            self._note(error)
            if error.code == _NO_CONSUMER:
                return None
            raise

    async def forget(self, name: str) -> None:
        """Remove a durable consumer; nothing where there is none."""
        if await self.consumer(name) is not None:
            async with self.connection.answering():
                await self.connection.js.delete_consumer(self.stream, name)

    async def purge(self, pattern: str) -> None:
        """Remove the values of all keys that match."""
        await self._ask(f"STREAM.PURGE.{self.stream}", {"filter": self._prefix + pattern})

    async def remove(self) -> None:
        """Remove the bucket with all that it holds; nothing where there is none."""
        try:
            await self._ask(f"STREAM.DELETE.{self.stream}", {})
        except RefusedError as error:
            if error.code != STREAM_NOT_FOUND:
                raise

    def entry(self, message: Msg) -> Entry:
        """Take a message from a consumer as an entry."""
        key = message.subject.removeprefix(self._prefix)
        metadata = message.metadata
        put = metadata.timestamp.timestamp()
        return Entry(key, metadata.sequence.stream, message.data, message.headers or {}, put)

    async def _add_consumer(self, config: api.ConsumerConfig) -> api.ConsumerInfo:
        try:
            async with self.connection.answering():
                return await self.connection.js.add_consumer(self.stream, config=config)
        except RefusedError as error:
            self._note(error)
            raise

    async def _entry(self, request: Mapping[str, object]) -> Entry | None:
        try:
            message = (await self._ask(f"STREAM.MSG.GET.{self.stream}", request))["message"]
        except RefusedError as error:
            if error.code == _NO_MESSAGE:
                return None
            raise
        data = await offload(len(text := message.get("data", "")), base64.b64decode, text)
        headers = _headers(base64.b64decode(message.get("hdrs", "")))
        return Entry(message["subject"].removeprefix(self._prefix), message["seq"], data, headers)

    async def _ask(self, call: str, request: Mapping[str, object]) -> dict[str, Any]:
        """Ask the API. Its answers may be large, so they are not decoded by the client, on the event loop."""
        connection = self.connection
        async with connection.answering():
            reply = await connection.client.request(
                f"$JS.API.{call}", orjson.dumps(request) if request else b"", timeout=connection.timeout
            )
        answer: dict[str, Any] = await offload(len(reply.data), orjson.loads, reply.data)
        if failure := answer.get("error"):
            error = RefusedError(connection.where, failure.get("err_code", 0))
            self._note(error)
            raise error
        return answer

    def _note(self, error: RefusedError) -> None:
        self.missing += error.code == STREAM_NOT_FOUND

    def _too_large(self, size: int) -> InvalidInputError:
        limit = self.connection.client.max_payload
        return InvalidInputError(
            f"{size} bytes are more than NATS at {self.connection.where} takes ({limit}): raise its max_payload, or "
            "split the file",
            reason="TOO_LARGE",
        )


def epoch_of(info: api.ConsumerInfo) -> int:
    """Read for which epoch a durable consumer was made."""
    return int((info.config.metadata or {}).get("memoryd-epoch", "0"))


def _headers(raw: bytes) -> dict[str, str]:
    lines = raw.decode().split("\r\n")[1:]
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines) if value}
