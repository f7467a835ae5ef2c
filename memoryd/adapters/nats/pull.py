"""Asking a pull consumer for messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import nats.errors
import orjson
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from memoryd.adapters.nats.connection import NatsConnection

_NO_MESSAGES, _EXPIRED = "404", "408"
_COMPLETED = "Batch Completed"
# How long messages may come after the end: a replicated consumer sends its statuses at once, its messages when they
# are replicated.
_LATE = 1.0

_log = structlog.get_logger(__name__)


class Pull:
    """One request to a consumer, as a context.

    Args:
        connection: where to.
        consumer: stream and name, joined by a dot.
        batch: most messages.
        wait: seconds to wait for the messages; 0 takes what is there.
        max_bytes: bound of what comes, unless the first message alone is larger; 0 for none.
        take: called with each message.
    """

    def __init__(
        self,
        connection: NatsConnection,
        consumer: str,
        *,
        batch: int,
        wait: float = 0.0,
        max_bytes: int = 0,
        take: Callable[[Msg], None] | None = None,
    ) -> None:
        self.messages: list[Msg] = []
        self.failed = False
        self._connection, self._consumer, self._batch, self._wait = connection, consumer, batch, wait
        self._max_bytes, self._take = max_bytes, take
        self._expected = batch
        self._ended = asyncio.Event()
        self._subscription: Subscription | None = None

    async def __aenter__(self) -> Self:
        """Ask. Raises UnavailableError."""
        client = self._connection.client
        request: dict[str, object] = {"batch": self._batch}
        if self._wait:
            request["expires"] = int(self._wait * 1e9)
        else:
            request["no_wait"] = True
        if self._max_bytes:
            request["max_bytes"] = self._max_bytes
        async with self._connection.answering():
            self._subscription = await client.subscribe(client.new_inbox(), cb=self._on_message)
            await client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{self._consumer}", orjson.dumps(request), reply=self._subscription.subject
            )
        return self

    async def done(self) -> list[Msg]:
        """Wait until all has come that comes. Raises UnavailableError where the consumer does not answer."""
        async with self._connection.answering(self._wait + self._connection.timeout):
            await self._ended.wait()
        if self.failed:
            raise self._connection.unavailable()
        return self.messages

    def cut(self) -> None:
        """End it early. What it has leased and not received comes again when the lease is over."""
        self._ended.set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the request back."""
        if self._subscription is not None:
            with suppress(nats.errors.Error):  # the connection is closed
                await self._subscription.unsubscribe()

    async def _on_message(self, message: Msg) -> None:
        headers = message.headers or {}
        if "Status" in headers and not message.data:
            self._end(headers["Status"], headers)
        else:
            self.messages.append(message)
            if self._take:
                self._take(message)
        if len(self.messages) >= self._expected:
            self._ended.set()

    def _end(self, status: str, headers: dict[str, str]) -> None:
        """Find out how many messages there are in all."""
        reason = headers.get("Description")
        if reason != _COMPLETED:
            self._expected = self._batch - int(headers.get("Nats-Pending-Messages", self._batch))
        if status not in {_NO_MESSAGES, _EXPIRED} and self._expected == 0:
            _log.debug("a pull failed", consumer=self._consumer, status=status, reason=reason)
            self.failed = True
        asyncio.get_running_loop().call_later(_LATE, self._ended.set)
