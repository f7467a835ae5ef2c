from typing import Any

import grpc
import pytest
import structlog

from memoryd.domain.files import Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.queries import Chat, CitationMode, Freshness, Mode, Rerank, SearchQuery, TypedKind, TypedQuery
from memoryd.ports import IndexFailure, IndexStatus, PartProbe
from memoryd.v1 import common_pb2, memory_pb2, memory_pb2_grpc
from tests.support.gateway import SCOPE, Gateway
from tests.support.gateway_server import gateway_server


async def search(gateway: Gateway, request: memory_pb2.MemorySearchRequest) -> memory_pb2.MemorySearchResponse:
    async with gateway_server(gateway) as server, grpc.aio.insecure_channel(server.address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        return await stub.MemorySearch(request, metadata=[("authorization", "Bearer one-workspace")])


async def test_what_is_left_out_takes_the_contract_s_defaults() -> None:
    gateway = Gateway()
    await search(gateway, memory_pb2.MemorySearchRequest(query="boiler"))
    scope, query, timeout = gateway.searcher.asked[0]
    assert (scope, query) == (SCOPE, SearchQuery("boiler"))
    assert (query.max_results, query.min_score, query.sources) == (6, 0.35, frozenset(Source))
    assert (query.mode, query.rerank, query.chat, query.citations) == ("hybrid", "auto", "direct", "auto")
    assert 9 < timeout < 10


async def test_every_field_arrives() -> None:
    gateway = Gateway()
    await search(
        gateway,
        memory_pb2.MemorySearchRequest(
            workspace="main",
            query="boiler",
            max_results=3,
            min_score=0.0,
            source=common_pb2.SOURCE_SESSIONS,
            path_prefix="memory/",
            since="2026-01-01",
            until="2026-12-31",
            mode=common_pb2.SEARCH_MODE_TEXT,
            rerank=common_pb2.RERANK_MODE_OFF,
            mmr_lambda=0.0,
            decay_half_life_days=30,
            freshness=memory_pb2.Freshness(path="a.md", at_least_revision="2-1f", wait_ms=0),
            explain=True,
            chat=common_pb2.CHAT_CHANNEL,
            typed=[memory_pb2.TypedQuery(kind=memory_pb2.TypedQuery.KIND_HYDE, text="It was replaced.")],
            citations=memory_pb2.CITATIONS_ON,
        ),
    )
    assert gateway.searcher.asked[0][1] == SearchQuery(
        text="boiler",
        max_results=3,
        min_score=0.0,
        sources=frozenset({Source.SESSIONS}),
        path_prefix="memory/",
        since="2026-01-01",
        until="2026-12-31",
        mode=Mode.TEXT,
        rerank=Rerank.OFF,
        mmr_lambda=0.0,
        decay_half_life_days=30.0,
        freshness=Freshness("a.md", Revision(2, 0x1F), 0.0),
        explain=True,
        chat=Chat.CHANNEL,
        typed=(TypedQuery(TypedKind.HYDE, "It was replaced."),),
        citations=CitationMode.ON,
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"source": 9}, "source: 9 is not known; it must be one of SOURCE_MEMORY (1), ", id="source"),
        pytest.param({"mode": 9}, "mode: 9 is not known; it must be one of SEARCH_MODE_HYBRID (1), ", id="mode"),
        pytest.param({"rerank": -1}, "rerank: -1 is not known; it must be one of RERANK_MODE_AUTO (1), ", id="rerank"),
        pytest.param({"chat": 4}, "chat: 4 is not known; it must be one of CHAT_DIRECT (1), ", id="chat"),
        pytest.param({"citations": 4}, "citations: 4 is not known; it must be one of CITATIONS_AUTO", id="citations"),
        pytest.param(
            {"typed": [memory_pb2.TypedQuery(text="x")]},
            "typed[0].kind: 0 says nothing; it must be one of KIND_LEX (1), ",
            id="kind-0",
        ),
        pytest.param(
            {"typed": [memory_pb2.TypedQuery(text="x", kind=7)]},  # type: ignore[arg-type]  # a number of the future
            "typed[0].kind: 7 is not known; it must be one of KIND_LEX (1), ",
            id="kind",
        ),
        pytest.param(
            {"freshness": memory_pb2.Freshness(path="a.md", at_least_revision="latest")},
            "freshness.at_least_revision: 'latest' is not a revision; pass one as an earlier answer gave it",
            id="revision",
        ),
        pytest.param(
            {"freshness": memory_pb2.Freshness(path="a.md")},
            "freshness.at_least_revision: '' is not a revision",
            id="revision-missing",
        ),
        pytest.param(
            {"freshness": memory_pb2.Freshness(path="a.md", at_least_revision="1-1", wait_ms=30_001)},
            "freshness.wait_ms: 30001 is out of range; it must be from 0 to 30000",
            id="wait",
        ),
    ],
)
async def test_numbers_and_tokens_without_meaning_are_refused(fields: dict[str, Any], message: str) -> None:
    gateway = Gateway()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await search(gateway, memory_pb2.MemorySearchRequest(query="boiler", **fields))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (caught.value.details() or "").startswith(message)
    assert gateway.searcher.asked == []


async def test_the_log_line_says_what_was_found_and_not_what_was_asked() -> None:
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        await search(Gateway(), memory_pb2.MemorySearchRequest(query="a private question"))
    (line,) = (entry for entry in logs if entry["event"] == "call")
    facts = {name: line[name] for name in ("key_id", "tenant", "workspace", "results", "mode", "pending", "degraded")}
    assert facts == {
        "key_id": "k1",
        "tenant": "acme",
        "workspace": "main",
        "results": 1,
        "mode": "hybrid",
        "pending": 0,
        "degraded": [],
    }
    assert "a private question" not in str(logs)
    assert "one-workspace" not in str(logs)


async def test_status_of_all_workspaces_of_the_key() -> None:
    async with gateway_server(Gateway()) as server, grpc.aio.insecure_channel(server.address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        metadata = [("authorization", "Bearer two-workspaces")]
        every = await stub.Status(memory_pb2.MemoryServiceStatusRequest(), metadata=metadata)
        one = await stub.Status(memory_pb2.MemoryServiceStatusRequest(workspace="side"), metadata=metadata)
    assert [item.workspace for item in every.workspaces] == ["main", "side"]
    assert [item.workspace for item in one.workspaces] == ["side"]
    assert every.model.name == "tiny"


async def test_a_failure_is_told_without_what_is_the_operator_s_business() -> None:
    gateway = Gateway()
    failure = IndexFailure("write", "DISK_FULL", "no room on the disk of /var/lib/memoryd", at=1.7e9, ongoing=True)
    gateway.indexing.statuses[SCOPE] = IndexStatus(SCOPE, 1, 1, 1, (), "1", lag=2.0, failure=failure)
    async with gateway_server(gateway) as server, grpc.aio.insecure_channel(server.address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        request = memory_pb2.MemoryServiceStatusRequest(workspace=SCOPE.workspace)
        (status,) = (await stub.Status(request, metadata=[("authorization", "Bearer one-workspace")])).workspaces
    assert (status.lag_seconds, status.failure.reason, status.failure.ongoing) == (2.0, "DISK_FULL", True)
    assert (status.available, status.reconciled_at) == (True, 7.5)
    assert status.failure.detail == ""


@pytest.mark.parametrize("unreachable", [False, True])
async def test_how_the_parts_answer_is_told_without_where_they_are(unreachable: bool) -> None:
    gateway = Gateway()
    gateway.indexing.unreachable = unreachable
    gateway.indexing.probes = [PartProbe("file log", 0.25), PartProbe("embedder", 9e3, "STORE_LOST", "at 10.0.0.7")]
    async with gateway_server(gateway) as server, grpc.aio.insecure_channel(server.address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        metadata = [("authorization", "Bearer two-workspaces")]
        parts = (await stub.Probe(memory_pb2.MemoryServiceProbeRequest(), metadata=metadata)).parts
    reasons = {part.part: part.reason for part in parts}
    assert reasons == ({"indexer": "UNAVAILABLE"} if unreachable else {"file log": "", "embedder": "STORE_LOST"})
    assert [part.detail for part in parts if part.detail] == []


async def test_the_tenant_is_the_key_s() -> None:
    gateway = Gateway()
    gateway.workspace.put("a.md", "rival's\n", scope=Scope("rival", "main"))
    async with gateway_server(gateway) as server, grpc.aio.insecure_channel(server.address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        request = memory_pb2.MemoryGetRequest(workspace="main", path="a.md")
        mine = await stub.MemoryGet(request, metadata=[("authorization", "Bearer one-workspace")])
        theirs = await stub.MemoryGet(request, metadata=[("authorization", "Bearer other-tenant")])
    assert mine.status == memory_pb2.MemoryGetResponse.READ_STATUS_NOT_FOUND
    assert theirs.text == "rival's\n"
