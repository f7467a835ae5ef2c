"""One service of the deployment: its channel, and what every call of it has in common."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

import grpc
import structlog
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from memoryd import tracing
from memoryd.adapters.grpc.settings import ClientSettings, Name
from memoryd.errors import (
    DeadlineExceededError,
    InvalidInputError,
    MemorydError,
    UnauthenticatedError,
    UnavailableError,
)
from memoryd.server import calls
from memoryd.server.credentials import ServiceCredentialSettings
from memoryd.server.status import REQUEST_ID, method_name, read_error

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

_log = structlog.get_logger(__name__)


class Remote:
    """A service in one or more replicas; each call goes to the next one. It connects on first use."""

    def __init__(self, name: Name, settings: ClientSettings, credentials: ServiceCredentialSettings) -> None:
        """Prepare a channel in the running event loop. Raises ConfigError for an address or certificates of no use."""
        address = settings.address(name)
        self.where = f"the {name.replace('_', ' ')} service at {address}"
        self.settings = settings
        self._metadata = credentials.metadata
        self._answered = True
        tls = credentials.channel()
        self.channel = (
            grpc.aio.secure_channel(address, tls, options=settings.options)
            if tls
            else grpc.aio.insecure_channel(address, options=settings.options)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self.channel.close()

    async def ready(self) -> None:
        """Ask for the service's health. Raises UnavailableError where it does not serve now."""
        check: grpc.aio.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse] = self.channel.unary_unary(
            "/grpc.health.v1.Health/Check", HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
        )
        if (await self.call(check, HealthCheckRequest())).status != HealthCheckResponse.SERVING:
            raise UnavailableError(f"{self.where} does not serve yet: its log says what it waits for")

    async def call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        timeout: float | None = None,
    ) -> _Response:
        """Call a method, within `timeout` seconds and the deadline of the call being served.

        Raises the error that the service raised, UnavailableError, DeadlineExceededError.
        """
        with self._answering(method) as known:
            return await method(request, timeout=self._left(timeout), metadata=known)

    async def collect(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[_Request, _Response],
        request: _Request,
        timeout: float | None = None,
    ) -> list[_Response]:
        """Call a method that answers in parts, and wait for all; see `call`."""
        with self._answering(method) as known:
            responses = method(request, timeout=self._left(timeout), metadata=known)
            return [response async for response in responses]

    async def exchange(
        self,
        method: grpc.aio.StreamStreamMultiCallable[_Request, _Response],
        requests: AsyncIterator[_Request],
        patience: float,
    ) -> AsyncGenerator[_Response]:
        """Call a method that takes a stream and answers with one; `patience`: seconds between two answers at most."""
        with self._answering(method) as known:
            timeout = self._left(math.inf) if calls.find() else None
            responses = method(requests, timeout=timeout, metadata=known)
            try:
                while True:
                    try:
                        async with asyncio.timeout(patience):
                            response = await responses.read()
                    except TimeoutError:
                        raise DeadlineExceededError(f"{self.where} gave no answer for {patience:.3g} s") from None
                    if response is grpc.aio.EOF:
                        return
                    yield cast("_Response", response)
            finally:
                responses.cancel()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Guard the reading of an answer. Raises UnavailableError where it can't be understood."""
        try:
            yield
        except (InvalidInputError, ValueError) as error:
            raise UnavailableError(
                f"{self.where} answered what this version can't read: run the same version of both"
            ) from error

    def _left(self, timeout: float | None) -> float:
        timeout = self.settings.timeout if timeout is None else timeout
        call = calls.find()
        left = min(timeout, call.left) if call else timeout
        if left <= 0:
            raise DeadlineExceededError(f"the deadline had passed before {self.where} was asked")
        return left

    @contextmanager
    def _answering(self, method: object) -> Iterator[tuple[tuple[str, str], ...]]:
        """Make a call in the block, with the metadata that it is given."""
        call = calls.find()
        with tracing.calling("grpc", method_name(method)) as span:
            known = (*self._metadata, *span.metadata)
            if call:
                known = (*known, (REQUEST_ID, call.request_id))
                span.note(request_id=call.request_id)
            try:
                yield known
            except grpc.aio.AioRpcError as error:
                translated = self._translate(error)
                span.answered(error.code().value[0])
                self._note(error, answered=not isinstance(translated, UnavailableError | DeadlineExceededError))
                raise translated from error
            span.answered(0)
        self._note(None, answered=True)

    def _translate(self, error: grpc.aio.AioRpcError) -> MemorydError:
        sent, code = read_error(error), error.code()
        if isinstance(sent, UnauthenticatedError):  # to our caller that would say that its own key is wrong
            return UnavailableError(
                f"{self.where} refuses this process: give both the same MEMORYD_SERVICE_TOKENS",
                reason="SERVICE_CREDENTIAL_REFUSED",
            )
        if sent:
            return sent
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceededError(f"{self.where} did not answer in time: see its log")
        if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
            return UnavailableError(f"{self.where} does not answer: check that it runs and can be reached")
        return UnavailableError(f"{self.where} answers {code.name}: check that it is one, of this version")

    def _note(self, error: grpc.aio.AioRpcError | None, *, answered: bool) -> None:
        """Log when the service begins and when it ceases to fail, with what gRPC says, and nothing in between."""
        if answered is not self._answered:
            self._answered = answered
            if error and not answered:
                _log.warning("a service fails", service=self.where, code=error.code().name, detail=error.details())
            else:
                _log.info("a service answers again", service=self.where)
