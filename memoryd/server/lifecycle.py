"""From a bound port to an exit without a lost call."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memoryd.errors import ConfigError
from memoryd.server.interceptor import Authenticate, CallInterceptor
from memoryd.server.settings import ServerSettings

_log = structlog.get_logger(__name__)

# Health watchers never end by themselves; once the calls have, they get this long to take the last bytes.
_STREAMS_GRACE = 0.5


class Server:
    """A gRPC server: NOT_SERVING when entered, SERVING when told, drained on exit.

    Attributes:
        address: where it listens: as the settings say, with the port that was taken.
    """

    def __init__(self, settings: ServerSettings) -> None:
        """Prepare a server in the running event loop; nothing is bound yet."""
        self.address = settings.address
        self._settings = settings
        self._authenticators: dict[str, Authenticate] = {}
        self._interceptor = CallInterceptor(settings, self._authenticators)
        self._health = health.aio.HealthServicer()
        self._grpc = grpc.aio.server(interceptors=[self._interceptor], options=settings.options)

    def add(self, service: str, register: Callable[[grpc.aio.Server], None], authenticate: Authenticate) -> None:
        """Serve a service, by full name, to callers that `authenticate` knows; before the server is entered."""
        register(self._grpc)
        self._authenticators[service] = authenticate

    async def __aenter__(self) -> Self:
        """Bind and answer; health says NOT_SERVING. Raises ConfigError where the address can't be had."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        reflection.enable_server_reflection(
            (*self._authenticators, health.SERVICE_NAME, reflection.SERVICE_NAME), self._grpc
        )
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        try:
            port = self._grpc.add_insecure_port(self.address)
        except RuntimeError as error:
            raise ConfigError(
                f"can't listen on {self.address}: another process has that port, or it is no address of this machine. "
                "Stop the other process or choose another address.",
                reason="ADDRESS_UNUSABLE",
                address=self.address,
            ) from error
        if not self.address.startswith("unix:"):
            self.address = f"{self.address.rpartition(':')[0]}:{port}"
        await self._grpc.start()
        return self

    async def serve(self) -> None:
        """Report SERVING and go on until cancelled (`until_signal`)."""
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        _log.info("serving", address=self.address)
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        """Report NOT_SERVING, refuse new calls, let those in flight end within the drain time, then cut them off."""
        await self._health.enter_graceful_shutdown()
        _log.info("draining", seconds=self._settings.drain)
        stopped = asyncio.create_task(self._grpc.stop(self._settings.drain))
        idle = asyncio.create_task(self._interceptor.idle())
        await asyncio.wait({stopped, idle}, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.done():
            await asyncio.wait({stopped}, timeout=_STREAMS_GRACE)
        idle.cancel()
        await self._grpc.stop(None)
        await stopped
        _log.info("stopped")

    async def _set_health(self, status: int) -> None:
        for service in ("", *self._authenticators):
            await self._health.set(service, status)


@asynccontextmanager
async def until_signal() -> AsyncIterator[None]:
    """Run the body until it ends or SIGTERM or SIGINT comes; the body is then cancelled, and that is a normal end.

    What the body has opened with `async with` closes in reverse order: enter the server last, and calls are drained
    before the adapters go.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("until_signal needs a task")
    came: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        _log.info("signal", signal=number.name)
        if not came:
            task.cancel()
        came.append(number)

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    except asyncio.CancelledError:
        if not came:
            raise
        task.uncancel()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
