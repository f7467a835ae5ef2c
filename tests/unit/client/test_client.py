from dataclasses import asdict, replace

import grpc
import orjson
import pytest

from memoryd.client import MemorydClient
from memoryd.domain.files import Problem
from memoryd.domain.names import Scope
from memoryd.domain.queries import Degraded, Mode, SearchAnswer, SearchQuery, Stage
from memoryd.errors import (
    InvalidInputError,
    MemorydError,
    PermissionDeniedError,
    PreconditionFailedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from memoryd.ports import IndexStatus, QuarantinedFile
from tests.support.gateway import ANSWER, RESULT, SCOPE, FakeEmbedder, FakeSearcher, Gateway
from tests.support.gateway_server import gateway_client, gateway_server


async def test_search() -> None:
    degraded = (Degraded(Stage.VECTOR, "UNAVAILABLE", "down", "the text leg alone"),)
    answer = replace(ANSWER, mode=Mode.TEXT, model=None, pending=2, degraded=degraded)
    gateway = Gateway(searcher=FakeSearcher(answer))
    async with gateway_client(gateway) as client:
        reply = await client.search("boiler", max_results=3, chat="group", mmr=0.5, typed=[("lex", "boiler")])
    (result,) = reply.results
    assert (result.path, result.start_line, result.end_line) == (RESULT.path, 5, 9)
    assert (result.score, result.vector_score, result.text_score, result.rerank_score) == (0.75, 0.5, None, None)
    assert (result.source, result.revision, result.explanation) == ("memory", "1-11", ("score: 0.750",))
    assert (reply.mode, reply.model, reply.provider) == ("text", None, "")
    assert (reply.fallback, reply.stale, reply.pending) == (True, True, 2)
    assert [(entry.stage, entry.instead) for entry in reply.degraded] == [("vector", "the text leg alone")]
    assert reply.timings == {"embed": 2.5, "fuse": 0.5}
    query = gateway.searcher.asked[0][1]
    assert (query.max_results, query.chat, query.mmr_lambda, len(query.typed)) == (3, "group", 0.5, 1)


async def test_arguments_left_out_take_the_server_s_defaults() -> None:
    gateway = Gateway()
    async with gateway_client(gateway) as client:
        await client.search("boiler")
        await client.search("boiler", freshness=("a.md", "1-11"))
        await client.search("boiler", freshness=("a.md", "1-11"), freshness_wait=0.25)
    plain, default, waiting = (query for _, query, _ in gateway.searcher.asked)
    assert plain == SearchQuery("boiler")
    assert default.freshness is not None
    assert default.freshness.wait == 2.0
    assert waiting.freshness is not None
    assert waiting.freshness.wait == 0.25


async def test_replies_can_be_printed_as_json() -> None:
    gateway = Gateway()
    gateway.workspace.put("a.md", "one\ntwo\nthree\n")
    async with gateway_client(gateway) as client:
        search, get, status = (
            await client.search("x"),
            await client.get("a.md", start=2, lines=1),
            await client.status(),
        )
    assert orjson.loads(orjson.dumps(asdict(search)))["model"]["name"] == "tiny"
    assert orjson.loads(orjson.dumps(asdict(get)))["next_from"] == 3
    assert orjson.loads(orjson.dumps(asdict(status)))["disk_bytes"] == 4096


async def test_get() -> None:
    gateway = Gateway()
    current = gateway.workspace.put("a.md", "one\ntwo\nthree\n")
    async with gateway_client(gateway) as client:
        part = await client.get("a.md", start=2, lines=1, expected_hash=current)
        assert (part.path, part.text, part.start, part.lines) == ("a.md", "two\n", 2, 1)
        assert (part.truncated, part.next_from, part.status, part.file_hash) == (True, 3, "ok", current)
        missing = await client.get("memory/2031-01-01.md")
        assert (missing.text, missing.status, missing.next_from, missing.file_hash) == ("", "not_found", None, "")
        with pytest.raises(PreconditionFailedError) as caught:
            await client.get("a.md", expected_hash="0" * 64)
    assert caught.value.reason == "HASH_MISMATCH"
    assert caught.value.details["current_hash"] == current


async def test_status() -> None:
    gateway = Gateway(embedder=FakeEmbedder(None))
    set_aside = (QuarantinedFile("big.md", Problem("TOO_LARGE", "12 MiB")),)
    gateway.indexing.statuses[SCOPE] = IndexStatus(SCOPE, 3, 9, 1, set_aside, "7")
    gateway.workspace.problems[SCOPE] = Problem("UNREADABLE", "the folder is gone")
    async with gateway_client(gateway) as client:
        reply = await client.status()
    (workspace,) = reply.workspaces
    assert (workspace.workspace, workspace.files, workspace.chunks, workspace.pending) == ("main", 3, 9, 1)
    assert (workspace.available, workspace.problem) == (False, "the folder is gone")
    assert [(file.path, file.reason) for file in workspace.quarantined] == [("big.md", "TOO_LARGE")]
    assert reply.model is None


async def test_errors_come_back_as_ours_with_the_request_id() -> None:
    async with gateway_client(Gateway()) as client:
        with pytest.raises(InvalidInputError, match="max_results: 1000 is out of range") as caught:
            await client.search("boiler", max_results=1000)
        assert caught.value.details["field"] == "max_results"
        assert len(caught.value.details["request_id"]) == 16
        with pytest.raises(InvalidInputError, match=r"the path '\.\./x\.md' contains '\.\.'"):
            await client.get("../x.md")
        with pytest.raises(PermissionDeniedError):
            await client.search("boiler", workspace="side")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (UnimplementedError("typed is not served", field="typed"), UnimplementedError),
        (UnavailableError("no search leg answered"), UnavailableError),
        (ZeroDivisionError("driver text"), MemorydError),
    ],
)
async def test_errors_of_the_searcher(raised: Exception, expected: type[MemorydError]) -> None:
    gateway = Gateway(searcher=FakeSearcher(error=raised))
    async with gateway_client(gateway) as client:
        with pytest.raises(MemorydError) as caught:
            await client.search("boiler")
    assert type(caught.value) is expected
    assert "driver text" not in str(caught.value)


async def test_unavailable_is_tried_again() -> None:
    class StartingSearcher(FakeSearcher):
        async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
            self.error = None if self.asked else UnavailableError("starting")
            return await super().search(scope, query, timeout=timeout)

    gateway = Gateway(searcher=StartingSearcher())
    async with gateway_client(gateway) as client:
        assert len((await client.search("boiler")).results) == 1
    assert len(gateway.searcher.asked) == 2


async def test_a_server_that_cancels_because_it_stops_is_tried_again() -> None:
    asked = 0

    async def get(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        nonlocal asked
        asked += 1
        if asked == 1:
            await context.abort(grpc.StatusCode.CANCELLED)
        return b""

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(get)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("memoryd.v1.MemoryService", {"MemoryGet": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with MemorydClient(f"127.0.0.1:{port}", "k") as client:
        await client.get("a.md")
    await server.stop(None)
    assert asked == 2


async def test_a_server_may_be_restarted_between_calls() -> None:
    gateway = Gateway()
    async with gateway_server(gateway) as server:
        address = server.address
        client = MemorydClient(address, "one-workspace")
        await client.search("boiler")
    async with client, gateway_server(gateway, address):
        assert len((await client.search("boiler")).results) == 1


async def test_a_proxy_is_not_asked_for_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with gateway_client(Gateway()) as client:
        assert (await client.status()).version


async def test_nothing_listens() -> None:
    async with gateway_server(Gateway()) as server:
        address = server.address
    async with MemorydClient(address, "one-workspace") as client:
        with pytest.raises(UnavailableError, match=f"nothing answers at {address}; is the server running"):
            await client.status()


@pytest.mark.parametrize("key", ["wrong", "", "schlüssel", "two\nlines"])
async def test_a_wrong_key_is_not_repeated_in_the_error(key: str) -> None:
    async with gateway_server(Gateway()) as server:
        with pytest.raises(UnauthenticatedError) as caught:
            async with MemorydClient(server.address, key) as client:
                await client.status()
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_results": -1}, "max_results: -1 is out of range"),
        ({"max_results": 2.5}, "max_results: 2.5 is of a wrong type"),
        ({"path_prefix": "\udc80"}, r"path_prefix: '\\udc80' is no valid Unicode"),
        ({"mode": "fuzzy"}, "mode: 'fuzzy' is not known; it must be one of hybrid, vector, text"),
        ({"typed": [("sql", "x")]}, "typed: 'sql' is not known; it must be one of lex, vec, hyde"),
    ],
)
async def test_what_can_not_be_sent_is_named(arguments: dict[str, object], message: str) -> None:
    async with MemorydClient("127.0.0.1:1", "k") as client:
        with pytest.raises(InvalidInputError, match=message):
            await client.search("boiler", **arguments)  # type: ignore[arg-type]  # wrong on purpose
