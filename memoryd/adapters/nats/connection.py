"""One connection to NATS: it comes back by itself, forever, and calls that wait end at once when it is lost."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client, Server
from nats.js import JetStreamContext

from memoryd.errors import ConfigError, UnavailableError

STREAM_NOT_FOUND = 10059  # error codes of JetStream: errors.json in nats-server
# A half-open connection is given up after two of these.
_PING_SECONDS = 5
# Delays between attempts to connect again: the first bound doubles up to the second, with jitter.
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 2.0

_log = structlog.get_logger(__name__)


class RefusedError(UnavailableError):
    """JetStream refused a request.

    Attributes:
        code: JetStream's error code.
    """

    def __init__(self, where: str, code: int) -> None:
        """Name the server and the code; JetStream's own text stays inside."""
        super().__init__(f"NATS at {where} refused a request (JetStream error {code}): look into the server's log")
        self.code = code


class NatsConnection:
    """A connection that all adapters of a process share."""

    def __init__(self, servers: Sequence[str], timeout: float) -> None:
        self.timeout = timeout
        self.where = ", ".join(urlsplit(server).netloc.rpartition("@")[2] for server in servers)
        self.losses = 0  # how often the connection was lost
        self.client = Client()
        self.js: JetStreamContext = self.client.jetstream(timeout=timeout)
        self._up = asyncio.Event()
        self._limits: set[asyncio.Timeout] = set()

    @classmethod
    async def open(
        cls,
        servers: Sequence[str],
        *,
        name: str = "memoryd",
        timeout: float = 5.0,
        credentials: Path | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> NatsConnection:
        """Connect.

        Args:
            servers: URLs, `nats://host:port` or `tls://host:port`; they may carry a user and password, or a token.
            name: shown by the server's monitoring.
            timeout: seconds that the server has for each answer, and for this first connection.
            credentials: a file with a user's JWT and key.
            tls: for servers that want it.

        Raises UnavailableError where no server answers, ConfigError where it refuses the credentials.
        """
        connection = cls(servers, timeout)
        try:
            async with asyncio.timeout(timeout):
                await connection.client.connect(
                    list(servers),
                    name=name,
                    user_credentials=credentials,
                    tls=tls,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.2,  # type: ignore[arg-type]  # a float works, and is documented for Go
                    reconnect_to_server_handler=_choose,
                    ping_interval=_PING_SECONDS,
                    error_cb=connection._on_error,
                    disconnected_cb=connection._on_loss,
                    reconnected_cb=connection._on_return,
                )
        except (TimeoutError, OSError, nats.errors.Error) as error:
            await connection.client.close()
            if isinstance(error, nats.errors.AuthorizationError):
                raise ConfigError(f"NATS at {connection.where} refuses the credentials: check them") from error
            raise connection.unavailable() from error
        connection._up.set()
        return connection

    @asynccontextmanager
    async def answering(self, timeout: float | None = None) -> AsyncIterator[None]:
        """Guard calls of the client: they end within `timeout` seconds, and at once when the connection is lost.

        Raises UnavailableError, and RefusedError where JetStream answers with an error.
        """
        if not self.client.is_connected:
            raise self.unavailable()
        try:
            async with asyncio.timeout(self.timeout if timeout is None else timeout) as limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.discard(limit)
        except nats.js.errors.NoStreamResponseError as error:
            raise RefusedError(self.where, STREAM_NOT_FOUND) from error
        except nats.js.errors.APIError as error:
            raise RefusedError(self.where, error.err_code or 0) from error
        except (TimeoutError, OSError, nats.errors.Error) as error:
            _log.debug("no answer from NATS", server=self.where, error=repr(error))
            raise self.unavailable() from error

    async def connected(self) -> None:
        """Wait until the connection is there."""
        await self._up.wait()

    async def close(self) -> None:
        """Close for good. May be called twice."""
        await self.client.close()

    def unavailable(self) -> UnavailableError:
        """Make the error of a server that does not answer."""
        return UnavailableError(f"NATS at {self.where} does not answer: check that it runs and can be reached")

    async def _on_error(self, error: Exception) -> None:
        _log.debug("NATS connection error", server=self.where, error=repr(error))

    async def _on_loss(self) -> None:
        self.losses += 1
        self._up.clear()
        if not self.client.is_closed:
            _log.warning("connection to NATS lost; connecting again", server=self.where)
        now = asyncio.get_running_loop().time()
        for limit in self._limits:
            limit.reschedule(now)

    async def _on_return(self) -> None:
        _log.info("connected to NATS again", server=self.where)
        self._up.set()


def _choose(servers: list[Server], _info: dict[str, Any]) -> tuple[Server, float]:
    """Take the server that failed least, after a delay with jitter."""
    fewest = min(each.reconnects for each in servers)
    server = random.choice([each for each in servers if each.reconnects == fewest])  # noqa: S311  (no secret)
    longest = min(_FIRST_DELAY * 2 ** min(server.reconnects, 16), _LONGEST_DELAY)
    return server, random.uniform(longest / 2, longest)  # noqa: S311  (jitter, no secret)
