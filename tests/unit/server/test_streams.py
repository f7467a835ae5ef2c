"""Calls that answer in parts have credential, request id, deadline, limit, log line and error mapping as others do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
import structlog
from grpc import StatusCode

from memoryd.errors import UnimplementedError
from memoryd.server import calls
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from memoryd.server.status import read_error
from tests.support.echo import SERVICE, authenticate, call, echo, echo_server, parse, serving

METHOD = f"/{SERVICE}/Parts"
Behaviour = Callable[[bytes, Any], AsyncIterator[bytes]]


def stream_server(behaviour: Behaviour, **settings: Any) -> Server:  # noqa: ANN401  (settings validate it)
    server = Server(ServerSettings(**{"address": "127.0.0.1:0", **settings}))
    handler = grpc.unary_stream_rpc_method_handler(behaviour, parse, bytes)
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Parts": handler})
    server.add(SERVICE, lambda raw: raw.add_generic_rpc_handlers((handlers,)), authenticate)
    return server


def begin(
    channel: grpc.aio.Channel, request: bytes = b"x", key: str = "s3cret"
) -> grpc.aio.UnaryStreamCall[bytes, bytes]:
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(METHOD)
    return method(request, metadata=[("authorization", f"Bearer {key}"), ("x-request-id", "agent-7")])


async def collect(answer: grpc.aio.UnaryStreamCall[bytes, bytes]) -> list[bytes]:
    return [part async for part in answer]


async def three(request: bytes, context: object) -> AsyncIterator[bytes]:
    calls.current().facts["parts"] = 3
    for number in range(3):
        yield request + str(number).encode()


async def test_the_parts_arrive_with_the_request_id_and_one_log_line() -> None:
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        async with serving(stream_server(three)) as channel:
            answer = begin(channel)
            assert (await answer.initial_metadata())["x-request-id"] == "agent-7"
            assert await collect(answer) == [b"x0", b"x1", b"x2"]
    (line,) = (entry for entry in logs if entry["event"] == "call")
    assert (line["method"], line["code"], line["parts"], line["request_id"]) == (METHOD, "OK", 3, "agent-7")


@pytest.mark.parametrize(
    ("request_", "key", "code"),
    [(b"x", "wrong", StatusCode.UNAUTHENTICATED), (b"\xff", "s3cret", StatusCode.INVALID_ARGUMENT)],
)
async def test_nobody_gets_past_without_a_credential_and_a_message(request_: bytes, key: str, code: StatusCode) -> None:
    reached = False

    async def reach(request: bytes, context: object) -> AsyncIterator[bytes]:
        nonlocal reached
        reached = True
        yield request

    async with serving(stream_server(reach)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await collect(begin(channel, request_, key))
    assert caught.value.code() is code
    assert not reached


@pytest.mark.parametrize("before", [0, 2])
async def test_an_error_arrives_after_the_parts_before_it(before: int) -> None:
    async def refuse(request: bytes, context: object) -> AsyncIterator[bytes]:
        for _ in range(before):
            yield request
        raise UnimplementedError("no more", field="x")

    async with serving(stream_server(refuse)) as channel:
        parts = aiter(begin(channel))
        assert [await anext(parts) for _ in range(before)] == [b"x"] * before
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await anext(parts)
    error = read_error(caught.value)
    assert isinstance(error, UnimplementedError)
    assert error.details == {"field": "x", "request_id": "agent-7"}


async def test_time_runs_out_in_the_middle() -> None:
    closed = asyncio.Event()

    async def hang(request: bytes, context: object) -> AsyncIterator[bytes]:
        try:
            yield request
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with serving(stream_server(hang, default_timeout=0.1)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await collect(begin(channel))
        await closed.wait()
    assert caught.value.code() is StatusCode.DEADLINE_EXCEEDED


async def test_a_caller_that_goes_away_closes_the_stream() -> None:
    closed = asyncio.Event()

    async def endless(request: bytes, context: object) -> AsyncIterator[bytes]:
        try:
            while True:
                yield request * 100_000
        finally:
            closed.set()

    with structlog.testing.capture_logs() as logs:
        async with serving(stream_server(endless)) as channel:
            answer = begin(channel)
            assert await anext(aiter(answer))
            answer.cancel()
            async with asyncio.timeout(30):
                await closed.wait()
    assert [entry["code"] for entry in logs if entry["event"] == "call"] == ["CANCELLED"]


async def test_a_method_that_takes_a_stream_is_not_served() -> None:
    server = echo_server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_unary_rpc_method_handler(echo)
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Take": handler})
    server.add(SERVICE, lambda raw: raw.add_generic_rpc_handlers((handlers,)), authenticate)
    async with serving(server) as channel:
        take: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(f"/{SERVICE}/Take")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await take(iter([b"x"]), metadata=[("authorization", "Bearer s3cret")])
        assert caught.value.code() is StatusCode.UNKNOWN
        assert await call(channel) == b"x"


def exchange_server(behaviour: Any, **settings: Any) -> Server:  # noqa: ANN401  (a handler; settings validate it)
    server = Server(ServerSettings(**{"address": "127.0.0.1:0", **settings}))
    handler = grpc.stream_stream_rpc_method_handler(behaviour, parse, bytes)
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Exchange": handler})
    server.add(SERVICE, lambda raw: raw.add_generic_rpc_handlers((handlers,)), authenticate)
    return server


async def exchange(channel: grpc.aio.Channel, *requests: bytes, key: str = "s3cret") -> list[bytes]:
    method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(f"/{SERVICE}/Exchange")
    answer = method(iter(requests), metadata=[("authorization", f"Bearer {key}")])
    return [part async for part in answer]


async def each(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
    async for request in requests:
        calls.current().facts["last"] = request.decode()
        yield request * 2


async def test_a_stream_is_answered_by_a_stream() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(exchange_server(each)) as channel:
            assert await exchange(channel, b"a", b"b", b"c") == [b"aa", b"bb", b"cc"]
    (line,) = (entry for entry in logs if entry["event"] == "call")
    assert (line["code"], line["last"]) == ("OK", "c")


@pytest.mark.parametrize(
    ("requests", "key", "code"),
    [
        ((b"a",), "wrong", StatusCode.UNAUTHENTICATED),
        ((), "wrong", StatusCode.UNAUTHENTICATED),
        ((b"a", b"\xff"), "s3cret", StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_a_stream_needs_a_credential_and_messages(
    requests: tuple[bytes, ...], key: str, code: StatusCode
) -> None:
    async with serving(exchange_server(each)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await exchange(channel, *requests, key=key)
    assert caught.value.code() is code


async def test_a_stream_without_a_deadline_gets_its_own() -> None:
    left: list[float] = []

    async def measure(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        left.append(calls.current().left)
        async for request in requests:
            yield request

    async with serving(exchange_server(measure, default_timeout=1, max_timeout=2, max_stream_timeout=900)) as channel:
        await exchange(channel, b"a")
    assert 800 < left[0] <= 900
