import asyncio

import pytest
import structlog
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status
from prometheus_client import REGISTRY
from structlog.typing import EventDict

from memoryd.errors import UnimplementedError
from memoryd.server import calls
from memoryd.server.status import error_info
from tests.support.echo import METHOD, PRINCIPAL, call, echo_server, failure, health, serving


async def test_a_call_knows_who_calls_and_how_much_time_is_left() -> None:
    seen: list[tuple[object, float]] = []

    async def look(request: bytes, context: object) -> bytes:
        seen.append((calls.current().principal, calls.current().left))
        return request

    async with serving(echo_server(look, default_timeout=7, max_timeout=20)) as channel:
        assert await call(channel) == b"x"
        await call(channel, timeout=5)
        await call(channel, timeout=3600)
    assert [principal for principal, _ in seen] == [PRINCIPAL] * 3
    assert [round(left) for _, left in seen] == [7, 5, 20]


@pytest.mark.parametrize("key", ["", "wrong"])
async def test_nobody_gets_past_without_a_credential(key: str) -> None:
    reached = False

    async def reach(request: bytes, context: object) -> bytes:
        nonlocal reached
        reached = True
        return request

    async with serving(echo_server(reach)) as channel:
        error = await failure(call(channel, key=key))
    assert error.code() is StatusCode.UNAUTHENTICATED
    assert not reached


async def test_the_request_id_comes_back() -> None:
    async with serving(echo_server()) as channel:
        given = call(channel, request_id="agent-7/42")
        assert (await given.initial_metadata())["x-request-id"] == "agent-7/42"
        made = call(channel)
        assert len(str((await made.initial_metadata())["x-request-id"])) == 16
        replaced = call(channel, request_id='"}, "level": "x')
        assert len(str((await replaced.initial_metadata())["x-request-id"])) == 16
        refused = await failure(call(channel, key="", request_id="agent-7/43"))
        assert refused.trailing_metadata()["x-request-id"] == "agent-7/43"
        await asyncio.gather(given, made, replaced)


async def test_an_error_arrives_with_code_message_reason_and_details() -> None:
    async def refuse(request: bytes, context: object) -> bytes:
        raise UnimplementedError("typed is not served by this version; leave it out", field="typed")

    async with serving(echo_server(refuse)) as channel:
        error = await failure(call(channel))
    assert error.code() is StatusCode.UNIMPLEMENTED
    assert error.details() == "typed is not served by this version; leave it out"
    info = error_info(rpc_status.from_call(error))  # type: ignore[arg-type]  # it has what from_call reads
    assert info is not None
    assert (info.reason, dict(info.metadata)) == ("UNIMPLEMENTED", {"field": "typed"})


async def test_an_unexpected_error_goes_to_the_log_and_not_to_the_caller() -> None:
    async def break_down(request: bytes, context: object) -> bytes:
        raise ValueError("secret driver text")

    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        async with serving(echo_server(break_down)) as channel:
            error = await failure(call(channel, request_id="r-1"))
    assert error.code() is StatusCode.INTERNAL
    assert error.details() == "internal error; the server's log has it under request id r-1"
    assert "secret driver text" not in str(error)
    (entry,) = (entry for entry in logs if entry["event"] == "call_failed")
    assert (entry["request_id"], entry["exc_info"]) == ("r-1", True)


async def test_time_runs_out() -> None:
    cancelled = asyncio.Event()

    async def hang(request: bytes, context: object) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return request

    async with serving(echo_server(hang, default_timeout=0.05)) as channel:
        error = await failure(call(channel))
        await cancelled.wait()
    assert error.code() is StatusCode.DEADLINE_EXCEEDED
    assert "allow it more time" in (error.details() or "")


async def test_a_caller_that_goes_away_cancels_its_call() -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(request: bytes, context: object) -> bytes:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return request

    with structlog.testing.capture_logs() as logs:
        async with serving(echo_server(hang)) as channel:
            running = call(channel)
            await began.wait()
            running.cancel()
            await cancelled.wait()
    assert [entry["code"] for entry in logs if entry["event"] == "call"] == ["CANCELLED"]


async def test_bytes_that_are_no_message_are_the_caller_s_fault() -> None:
    async with serving(echo_server()) as channel:
        error = await failure(call(channel, b"\xff"))
    assert error.code() is StatusCode.INVALID_ARGUMENT
    assert error.details() == f"the request is not a message of {METHOD}; use the published proto files"


async def test_more_calls_than_allowed_are_refused_and_health_still_answers() -> None:
    began, release = asyncio.Event(), asyncio.Event()

    async def wait(request: bytes, context: object) -> bytes:
        began.set()
        await release.wait()
        return request

    async with serving(echo_server(wait, max_calls=1)) as channel:
        first = asyncio.ensure_future(call(channel))
        await began.wait()
        refused = await failure(call(channel))
        status = await health(channel)
        release.set()
        assert await first == b"x"
        assert await call(channel) == b"x"
    assert refused.code() is StatusCode.RESOURCE_EXHAUSTED
    assert refused.details() == "the server already serves 1 calls; try again later"
    assert status == health_pb2.HealthCheckResponse.SERVING


async def test_a_method_that_nobody_serves() -> None:
    async with serving(echo_server()) as channel:
        error = await failure(call(channel, method="/memoryd.test.Echo/Other"))
    assert error.code() is StatusCode.UNIMPLEMENTED


async def test_one_log_line_and_one_count_a_call() -> None:
    async def work(request: bytes, context: object) -> bytes:
        calls.current().facts["results"] = 3
        return request

    def count() -> float:
        return REGISTRY.get_sample_value("memoryd_grpc_calls_total", {"method": METHOD, "code": "OK"}) or 0.0

    def observed() -> float:
        return REGISTRY.get_sample_value("memoryd_grpc_call_seconds_count", {"method": METHOD, "code": "OK"}) or 0.0

    before = count(), observed()
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        async with serving(echo_server(work)) as channel:
            await call(channel, b"a private question", request_id="r-1")
    (line,) = (entry for entry in logs if entry["event"] == "call")
    assert _without_time(line) == {
        "event": "call",
        "log_level": "info",
        "method": METHOD,
        "request_id": "r-1",
        "key_id": "k1",
        "tenant": "acme",
        "code": "OK",
        "results": 3,
    }
    assert "a private question" not in str(logs)
    assert "s3cret" not in str(logs)
    assert (count(), observed()) == (before[0] + 1, before[1] + 1)
    assert REGISTRY.get_sample_value("memoryd_grpc_calls_in_flight") == 0


def _without_time(line: EventDict) -> dict[str, object]:
    assert line["ms"] >= 0
    return {name: value for name, value in line.items() if name != "ms"}
