"""What happens around every call: credential, request id, deadline, one log line, metrics, errors as status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.message import DecodeError
from google.rpc import code_pb2, status_pb2
from grpc_status import rpc_status
from prometheus_client import Counter, Gauge, Histogram

from memoryd import tracing
from memoryd.errors import DeadlineExceededError, InvalidInputError, MemorydError, ResourceExhaustedError
from memoryd.ports import Principal
from memoryd.server import calls
from memoryd.server.settings import ServerSettings
from memoryd.server.status import REQUEST_ID, to_status

CALLS = Counter("memoryd_grpc_calls_total", "Calls served.", ["method", "code"])
CALL_SECONDS = Histogram(
    "memoryd_grpc_call_seconds",
    "Time of each call.",
    ["method", "code"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
IN_FLIGHT = Gauge("memoryd_grpc_calls_in_flight", "Calls being served now.")

_log = structlog.get_logger(__name__)

Authenticate = Callable[[str], Awaitable[Principal]]
"""Finds out who calls, from the value of the `authorization` metadata entry; raises UnauthenticatedError."""


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Serves the calls of the services that have an authenticator; others (health, reflection) pass as they are."""

    def __init__(self, settings: ServerSettings, authenticators: Mapping[str, Authenticate]) -> None:
        """Take the authenticators by the services' full names."""
        self._settings = settings
        self._authenticators = authenticators
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Wait until no call is being served."""
        await self._idle.wait()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401  (a handler of any request and response)
        """Wrap a handler. The generic types of grpc's handlers can't be named here: messages are of any type."""
        method = handler_call_details.method
        handler = await continuation(handler_call_details)
        authenticate = self._authenticators.get(method.split("/")[1])
        if handler is None or authenticate is None:
            return handler
        if handler.request_streaming:
            return self._streaming(handler, method, authenticate)

        async def serve(raw: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> object:
            async def answer(call: calls.Call) -> object:
                await _admit(call, authenticate, _metadata(context).get("authorization", ""))
                request = _parse(handler.request_deserializer, raw, method)
                if handler.response_streaming:
                    await _stream(handler.unary_stream(request, context), call, context)
                    return None
                response = await handler.unary_unary(request, context)
                await _begin_answer(call, context)
                return response

            return await self._serve(method, answer, context)

        # The request arrives as bytes: one that can't be read is the caller's fault, and gRPC would call it UNKNOWN.
        wrap = (
            grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
        )
        return wrap(serve, None, handler.response_serializer)

    def _streaming(self, handler: Any, method: str, authenticate: Authenticate) -> Any:  # noqa: ANN401  (as above)
        """Wrap a handler that takes a stream and answers with one: the credential is looked at before any request."""
        if not handler.response_streaming:
            raise NotImplementedError(f"{method} takes a stream and answers once: no method of ours does")
        longest = self._settings.max_stream_timeout

        async def serve(raws: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> object:
            async def requests() -> AsyncIterator[object]:
                async for raw in raws:
                    yield _parse(handler.request_deserializer, raw, method)

            async def answer(call: calls.Call) -> None:
                await _admit(call, authenticate, _metadata(context).get("authorization", ""))
                await _stream(handler.stream_stream(requests(), context), call, context)

            return await self._serve(method, answer, context, default=longest, longest=longest)

        return grpc.stream_stream_rpc_method_handler(serve, None, handler.response_serializer)

    async def _serve(
        self,
        method: str,
        answer: Callable[[calls.Call], Awaitable[object]],
        context: grpc.aio.ServicerContext[Any, Any],
        *,
        default: float | None = None,
        longest: float | None = None,
    ) -> object:
        # None, whatever the stubs say, where the client set no deadline.
        asked: float | None = context.time_remaining()
        if asked is None:
            asked = default or self._settings.default_timeout
        timeout = min(asked, longest or self._settings.max_timeout)
        metadata = _metadata(context)
        call = calls.begin(method, metadata.get(REQUEST_ID, ""), timeout)
        with (
            tracing.serving("grpc", method, metadata, request_id=call.request_id) as span,
            structlog.contextvars.bound_contextvars(request_id=call.request_id, **span.logged),
        ):
            try:
                async with self._slot(), asyncio.timeout(call.left):
                    response = await answer(call)
            except asyncio.CancelledError:
                code = "CANCELLED" if call.left else "DEADLINE_EXCEEDED"
                _tell(call, code, span)
                _record(call, code, time.monotonic() - call.began)
                raise
            except Exception as error:  # noqa: BLE001  (the boundary: whatever happened becomes a status)
                status = to_status(error, call.request_id)
                code = code_pb2.Code.Name(status.code)
                if code == "INTERNAL":
                    _log.exception("call_failed", method=method)
                call.facts["reason"] = error.reason if isinstance(error, MemorydError) else type(error).__name__
                _tell(call, code, span)
                _record(call, code, time.monotonic() - call.began)
                await _abort(context, status, call.request_id)
            seconds = time.monotonic() - call.began
            _tell(call, "OK", span)
            # When the answer is on its way: a log line takes .1 ms, and nobody need wait for it.
            asyncio.get_running_loop().call_soon(_record, call, "OK", seconds)
            return response

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._running >= self._settings.max_calls:
            raise ResourceExhaustedError(f"the server already serves {self._running} calls; try again later")
        self._running += 1
        self._idle.clear()
        IN_FLIGHT.inc()
        try:
            yield
        finally:
            IN_FLIGHT.dec()
            self._running -= 1
            if not self._running:
                self._idle.set()


async def _admit(call: calls.Call, authenticate: Authenticate, authorization: str) -> None:
    if not call.left:
        raise DeadlineExceededError("the call arrived after its deadline")
    call.principal = await authenticate(authorization)
    structlog.contextvars.bind_contextvars(key_id=call.principal.key_id)
    if call.principal.tenant:  # a service names the tenant in the request
        structlog.contextvars.bind_contextvars(tenant=call.principal.tenant)


async def _begin_answer(call: calls.Call, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    # A service of the deployment has given the id, and another message before the answer costs .15 ms.
    if call.principal.tenant:
        await context.send_initial_metadata(((REQUEST_ID, call.request_id),))


async def _stream(
    responses: AsyncGenerator[object], call: calls.Call, context: grpc.aio.ServicerContext[Any, Any]
) -> None:
    async with aclosing(responses):
        begun = False
        async for response in responses:
            if not begun:
                await _begin_answer(call, context)
                begun = True
            await context.write(response)


async def _abort(context: grpc.aio.ServicerContext[Any, Any], status: status_pb2.Status, request_id: str) -> NoReturn:
    # No initial metadata before an error: once a client has seen some, gRPC does not repeat the call for it.
    error = rpc_status.to_status(status)
    await context.abort(error.code, error.details, (*(error.trailing_metadata or ()), (REQUEST_ID, request_id)))


def _metadata(context: grpc.aio.ServicerContext[Any, Any]) -> dict[str, str]:
    """Give a call's textual metadata; of entries given twice the last counts."""
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _parse(deserialize: Callable[[bytes], object], raw: bytes, method: str) -> object:
    try:
        return deserialize(raw)
    except DecodeError as error:
        raise InvalidInputError(f"the request is not a message of {method}; use the published proto files") from error


def _tell(call: calls.Call, code: str, span: tracing.Span) -> None:
    span.answered(code_pb2.Code.Value(code))
    span.note(**call.facts)  # what the log says, and no more
    if reason := call.facts.get("reason"):
        span.failed(str(reason))


def _record(call: calls.Call, code: str, seconds: float) -> None:
    CALLS.labels(call.method, code).inc()
    CALL_SECONDS.labels(call.method, code).observe(seconds)
    _log.info("call", method=call.method, code=code, ms=round(seconds * 1000, 1), **call.facts)
