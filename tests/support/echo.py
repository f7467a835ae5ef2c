"""A gRPC service of raw bytes whose behaviour a test writes, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from memoryd.errors import UnauthenticatedError
from memoryd.ports import Principal
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings

SERVICE = "memoryd.test.Echo"
METHOD = f"/{SERVICE}/Call"
PRINCIPAL = Principal("k1", "acme", frozenset({"main"}))

Behaviour = Callable[[bytes, Any], Awaitable[bytes]]


async def echo(request: bytes, context: object) -> bytes:
    """Answer what was asked."""
    return request


def parse(raw: bytes) -> bytes:
    """Parse like a message does: some bytes are none."""
    if raw == b"\xff":
        raise DecodeError("Wire format was corrupt")
    return raw


async def authenticate(authorization: str) -> Principal:
    """Know one key."""
    if authorization != "Bearer s3cret":
        raise UnauthenticatedError("the key is not known")
    return PRINCIPAL


def echo_server(behaviour: Behaviour = echo, **settings: Any) -> Server:  # noqa: ANN401  (settings validate it)
    """Make a server of the behaviour, on a free port."""
    server = Server(ServerSettings(**{"address": "127.0.0.1:0", **settings}))
    add_echo(server, behaviour)
    return server


def add_echo(server: Server, behaviour: Behaviour = echo) -> None:
    """Serve the behaviour."""
    handler = grpc.unary_unary_rpc_method_handler(behaviour, parse, bytes)
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Call": handler})
    server.add(SERVICE, lambda raw: raw.add_generic_rpc_handlers((handlers,)), authenticate)


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[grpc.aio.Channel]:
    """Run a server and give a channel to it; the server drains when the block ends."""
    async with server, grpc.aio.insecure_channel(server.address) as channel:
        served = asyncio.create_task(server.serve())
        try:
            yield channel
        finally:
            served.cancel()
            await asyncio.wait({served})


def call(
    channel: grpc.aio.Channel,
    request: bytes = b"x",
    *,
    key: str = "s3cret",
    request_id: str = "",
    timeout: float | None = None,
    method: str = METHOD,
) -> grpc.aio.UnaryUnaryCall[bytes, bytes]:
    """Call the service."""
    metadata = [("authorization", f"Bearer {key}")] if key else []
    if request_id:
        metadata.append(("x-request-id", request_id))
    callable_: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    return callable_(request, metadata=metadata, timeout=timeout)


async def health(channel: grpc.aio.Channel, service: str = "") -> int:
    """Ask for a service's health once."""
    check: grpc.aio.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse] = channel.unary_unary(
        "/grpc.health.v1.Health/Check", HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
    )
    return int((await check(HealthCheckRequest(service=service))).status)


def watch_health(
    channel: grpc.aio.Channel, service: str
) -> grpc.aio.UnaryStreamCall[HealthCheckRequest, HealthCheckResponse]:
    """Watch a service's health; the stream never ends by itself."""
    watch: grpc.aio.UnaryStreamMultiCallable[HealthCheckRequest, HealthCheckResponse] = channel.unary_stream(
        "/grpc.health.v1.Health/Watch", HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
    )
    return watch(HealthCheckRequest(service=service))


async def failure(answer: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> grpc.aio.AioRpcError:
    """Wait for a call that must fail."""
    try:
        response = await answer
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError(f"the call answered {response!r}")
