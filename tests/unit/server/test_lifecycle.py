import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse
from pydantic import ValidationError

from memoryd.errors import ConfigError
from memoryd.server.lifecycle import Server, until_signal
from memoryd.server.settings import ServerSettings
from tests.support.echo import SERVICE, add_echo, call, echo_server, failure, health, serving, watch_health

Status = health_pb2.HealthCheckResponse
# A call that meets a closing server: gRPC's core gives either, and the client repeats both.
REFUSED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


class Gate:
    """A behaviour that answers when a test lets it."""

    def __init__(self) -> None:
        self.began, self.release = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: bytes, context: object) -> bytes:
        self.began.set()
        await self.release.wait()
        return request


async def test_health_is_serving_only_when_told() -> None:
    async with echo_server() as server, grpc.aio.insecure_channel(server.address) as channel:
        assert [await health(channel), await health(channel, SERVICE)] == [Status.NOT_SERVING] * 2
        watch = watch_health(channel, SERVICE)
        statuses = aiter(watch)
        assert (await anext(statuses)).status == Status.NOT_SERVING
        served = asyncio.create_task(server.serve())
        assert (await anext(statuses)).status == Status.SERVING
        assert await health(channel) == Status.SERVING
        served.cancel()
        watch.cancel()


async def test_reflection_names_the_services() -> None:
    async with serving(echo_server()) as channel:
        ask: grpc.aio.StreamStreamMultiCallable[ServerReflectionRequest, ServerReflectionResponse]
        ask = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            ServerReflectionRequest.SerializeToString,
            ServerReflectionResponse.FromString,
        )
        answers = [answer async for answer in ask(iter([ServerReflectionRequest(list_services="")]))]
    names = {service.name for answer in answers for service in answer.list_services_response.service}
    assert names >= {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_a_second_server_on_the_same_port_fails_and_names_it() -> None:
    async with echo_server() as first:
        with pytest.raises(ConfigError, match=f"can't listen on {first.address}: another process has that port"):
            async with echo_server(address=first.address):
                pass
        async with grpc.aio.insecure_channel(first.address) as channel:
            assert await call(channel) == b"x"


async def test_an_address_of_another_machine_fails() -> None:
    with pytest.raises(ConfigError, match=r"can't listen on 192\.0\.2\.1:7420"):
        async with echo_server(address="192.0.2.1:7420"):
            pass


async def test_a_unix_socket(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/memoryd.sock"
    async with serving(echo_server(address=address)) as channel:
        assert await call(channel) == b"x"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", ":7420", "a b:1", "::1:7420", ""])
def test_an_address_that_grpc_would_misread_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="is neither HOST:PORT"):
        ServerSettings(address=address)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:7420", "localhost:65535", "0.0.0.0:1", "unix:/run/m.sock"])
def test_addresses(address: str) -> None:
    assert ServerSettings(address=address).address == address


async def test_a_call_in_flight_answers_and_new_ones_are_refused() -> None:
    gate = Gate()
    server = echo_server(gate, drain=60)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server)
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.address))
        # A health watcher never ends by itself: it must not hold the drain up.
        watch = aiter(watch_health(channel, SERVICE))
        await anext(watch)
        served = asyncio.create_task(server.serve())
        assert (await anext(watch)).status == Status.SERVING
        running = asyncio.ensure_future(call(channel))
        await gate.began.wait()
        served.cancel()
        closing = asyncio.create_task(server.__aexit__())
        assert (await anext(watch)).status == Status.NOT_SERVING
        async with grpc.aio.insecure_channel(server.address) as late:
            refused = await failure(call(late))
        assert refused.code() in REFUSED
        assert not running.done()
        gate.release.set()
        assert await running == b"x"
        async with asyncio.timeout(30):
            await closing


async def test_a_call_that_outlasts_the_drain_is_cut_off() -> None:
    gate = Gate()
    server = echo_server(gate, drain=0.05)
    async with grpc.aio.insecure_channel((await server.__aenter__()).address) as channel:
        running = call(channel)
        await gate.began.wait()
        await server.__aexit__()
        assert (await failure(running)).code() in REFUSED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_the_calls_and_then_closes_what_was_opened_before(number: signal.Signals) -> None:
    events: list[str] = []
    gate = Gate()
    stopping = asyncio.Event()
    addresses: asyncio.Queue[str] = asyncio.Queue()

    @asynccontextmanager
    async def adapter(name: str) -> AsyncIterator[None]:
        try:
            yield
        finally:
            events.append(f"{name} closed")

    async def answering(request: bytes, context: object) -> bytes:
        answer = await gate(request, context)
        events.append("answered")
        return answer

    async def service() -> str:
        async with until_signal(), adapter("first"), adapter("second"), echo_server(answering) as server:
            await addresses.put(server.address)
            try:
                await server.serve()
            finally:
                stopping.set()
        return "exit 0"

    running = asyncio.create_task(service())
    async with grpc.aio.insecure_channel(await addresses.get()) as channel:
        answer = asyncio.ensure_future(call(channel))
        await gate.began.wait()
        os.kill(os.getpid(), number)
        await stopping.wait()
        gate.release.set()
        assert await answer == b"x"
        async with asyncio.timeout(30):
            assert await running == "exit 0"
    assert events == ["answered", "second closed", "first closed"]


async def test_a_signal_while_adapters_open_is_a_normal_end_too() -> None:
    opening = asyncio.Event()
    closed = False

    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        nonlocal closed
        try:
            opening.set()
            await asyncio.Event().wait()
            yield
        finally:
            closed = True

    async def service() -> None:
        async with until_signal(), slow():
            raise AssertionError("never open")

    running = asyncio.create_task(service())
    await opening.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    assert closed
    assert not running.cancelled()


async def test_cancelling_without_a_signal_is_not_swallowed() -> None:
    entered = asyncio.Event()

    async def service() -> None:
        async with until_signal():
            entered.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(service())
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_service_that_is_coming_is_unavailable_and_then_served() -> None:
    server = Server(ServerSettings(address="127.0.0.1:0"), coming=[SERVICE])
    async with server, grpc.aio.insecure_channel(server.address) as channel:
        server.waits_for = "the tide"
        early = await failure(call(channel))
        assert early.code() is grpc.StatusCode.UNAVAILABLE
        assert early.details() == "Echo is starting and waits for the tide: try again later"
        assert [await health(channel), await health(channel, SERVICE)] == [Status.NOT_SERVING] * 2
        add_echo(server)
        assert await call(channel) == b"x"


async def test_drained_early_it_is_not_drained_again() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(echo_server())
        await server.drain()
        async with grpc.aio.insecure_channel(server.address) as channel:
            assert (await failure(call(channel))).code() is grpc.StatusCode.UNAVAILABLE
