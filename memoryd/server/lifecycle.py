"""From a bound port to an exit without a lost call."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import NoReturn, Self

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memoryd.errors import ConfigError, UnavailableError
from memoryd.server.handlers import Handlers
from memoryd.server.interceptor import Authenticate, CallInterceptor
from memoryd.server.settings import ServerSettings
from memoryd.server.tls import server_credentials

_log = structlog.get_logger(__name__)

# A health service name: SERVING as soon as the process answers, whatever it waits for. Readiness is the name "".
LIVENESS = "liveness"
# Health watchers never end by themselves; once the calls have, they get this long to take the last bytes.
_STREAMS_GRACE = 0.5


class Server:
    """A gRPC server: NOT_SERVING when entered, SERVING when told, drained on exit.

    Attributes:
        address: where it listens: as the settings say, with the port that was taken.
        waits_for: what keeps it from serving, for those who call too early.
    """

    def __init__(self, settings: ServerSettings, *, coming: Iterable[str] = ()) -> None:
        """Prepare a server in the running event loop; nothing is bound yet.

        Args:
            settings: see there.
            coming: services, by full name, that are added only when it runs; until then their calls are UNAVAILABLE.
        """
        self.address = settings.address
        self.waits_for = "what it depends on"
        self._settings = settings
        self._handlers = Handlers(coming)
        self._authenticators: dict[str, Authenticate] = {
            service: partial(self._refuse, service) for service in self._handlers.coming
        }
        self._interceptor = CallInterceptor(settings, self._authenticators)
        self._health = health.aio.HealthServicer()
        self._grpc = grpc.aio.server(interceptors=[self._interceptor], options=settings.options)
        self._grpc.add_generic_rpc_handlers((self._handlers,))
        self._draining = asyncio.Lock()
        self._stopped = False

    @property
    def max_message_bytes(self) -> int:
        """Largest request that is taken."""
        return self._settings.max_message_bytes

    def add(self, service: str, register: Callable[[grpc.aio.Server], None], authenticate: Authenticate) -> None:
        """Serve a service, by full name, to callers that `authenticate` knows.

        Before the server is entered, or any time after where it was said to be coming.
        """
        register(self._handlers.registry)
        self._authenticators[service] = authenticate
        self._handlers.coming.discard(service)

    async def __aenter__(self) -> Self:
        """Bind and answer; health says NOT_SERVING. Raises ConfigError for an address or certificates of no use."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        reflection.enable_server_reflection(
            (*self._authenticators, health.SERVICE_NAME, reflection.SERVICE_NAME), self._grpc
        )
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._health.set(LIVENESS, health_pb2.HealthCheckResponse.SERVING)
        try:
            port = self._bind()
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

    def _bind(self) -> int:
        identity = self._settings.identity
        if identity is None:
            return self._grpc.add_insecure_port(self.address)
        return self._grpc.add_secure_port(self.address, server_credentials(identity, self._settings.tls_client_ca))

    async def serve(self) -> None:
        """Report SERVING and go on until cancelled (`until_signal`)."""
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        _log.info("serving", address=self.address, tls=self._settings.identity is not None)
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        """Drain."""
        await self.drain()

    async def drain(self) -> None:
        """Report NOT_SERVING, refuse new calls, let those in flight end within the drain time, then cut them off.

        Once; where the adapters were opened after the server was entered, before they are closed.
        """
        async with self._draining:
            if not self._stopped:
                await self._stop()
                self._stopped = True

    async def _stop(self) -> None:
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

    async def _refuse(self, service: str, _authorization: str) -> NoReturn:
        name = service.rpartition(".")[2]
        raise UnavailableError(f"{name} is starting and waits for {self.waits_for}: try again later", reason="STARTING")

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
