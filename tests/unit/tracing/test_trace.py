"""One search through gateway, search and embedder over real gRPC is one trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import grpc
import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import CollectorRegistry

from memoryd import tracing
from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.searcher import GrpcSearcher
from memoryd.client import MemorydClient
from memoryd.errors import MemorydError
from memoryd.ports import Lane, StreamingEmbedder, TextKind
from services.embedder.metrics import EmbedderMetrics
from services.embedder.rpc import add_to as add_embedder
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings
from services.search.rpc import add_to as add_search
from services.search.service import SearchService
from services.search.settings import SearchSettings
from tests.support.echo import METHOD, call, echo_server, serving
from tests.support.engine import FakeEngine
from tests.support.eventually import eventually
from tests.support.fakes import MemoryFileLog, MemoryManifest, MemoryTextStore, MemoryVectorStore
from tests.support.gateway import FakeSearcher, Gateway
from tests.support.gateway_server import gateway_client
from tests.support.indexing import Engines, World, section
from tests.support.inner import reached
from tests.support.tracing import Spans, spans_kept

SECRET = "the combination of the safe"


@asynccontextmanager
async def embedder_over_grpc(engine: FakeEngine) -> AsyncIterator[StreamingEmbedder]:
    metrics = EmbedderMetrics(CollectorRegistry())
    service = EmbedderService(engine, EmbedderSettings(bulk_threads=1), metrics=metrics)
    await service.start()
    async with reached("embedder", lambda server, known: add_embedder(server, service, known)) as way:
        yield await GrpcEmbedder(way).bound()
    await service.close()


@asynccontextmanager
async def deployment(engine: FakeEngine) -> AsyncIterator[MemorydClient]:
    """Gateway, search and embedder, each behind a server of its own."""
    async with AsyncExitStack() as stack:
        log = MemoryFileLog()
        await log.subscribe("indexer")
        search = SearchService(
            embedder=await stack.enter_async_context(embedder_over_grpc(engine)),
            vectors=MemoryVectorStore(),
            texts=MemoryTextStore(),
            manifest=MemoryManifest(),
            log=log,
            consumer="indexer",
            settings=SearchSettings(),
        )
        way = await stack.enter_async_context(
            reached("search", lambda server, known: add_search(server, search, known))
        )
        gateway = Gateway(searcher=cast("FakeSearcher", GrpcSearcher(way)))
        yield await stack.enter_async_context(gateway_client(gateway))


async def settled(spans: Spans) -> None:
    """Wait for a batch's span: it ends after the answers."""

    async def look() -> bool:
        return "embedder.batch" in [each.name for each in spans.all()]

    await eventually(look, wanted=True)


async def test_a_search_is_one_trace_through_all_services() -> None:
    async with deployment(FakeEngine()) as memory:
        await memory.search("what is fetched once is there")
        with spans_kept() as spans:
            reply = await memory.search(SECRET)
            await settled(spans)
    assert reply.degraded == ()
    assert len({each.context.trace_id for each in spans.all()}) == 1
    calls = {
        ("memoryd.v1.MemoryService/MemorySearch", ""),
        ("memoryd.v1.MemoryService/MemorySearch", "memoryd.v1.MemoryService/MemorySearch"),
        ("memoryd.v1.SearchService/Search", "memoryd.v1.MemoryService/MemorySearch"),
        ("memoryd.v1.SearchService/Search", "memoryd.v1.SearchService/Search"),
        ("memoryd.v1.EmbedderService/Embed", "search.embed"),
        ("memoryd.v1.EmbedderService/Embed", "memoryd.v1.EmbedderService/Embed"),
        ("embedder.batch", "memoryd.v1.EmbedderService/Embed"),
    }
    stages = {(f"search.{each}", "memoryd.v1.SearchService/Search") for each in ("embed", "vector", "text", "fuse")}
    assert spans.parents() == calls | stages
    batch = spans.one("embedder.batch")
    served = spans.one("memoryd.v1.EmbedderService/Embed")
    assert [link.context.span_id for link in batch.links] == [served.context.span_id]
    assert batch.attributes is not None
    assert {"memoryd.queue_seconds", "memoryd.padding"} <= batch.attributes.keys()
    assert (batch.attributes["memoryd.lane"], batch.attributes["memoryd.texts"]) == ("query", 1)
    ids = {(each.attributes or {}).get("memoryd.request_id") for each in spans.all() if "Service/" in each.name}
    assert len(ids - {None}) == 1
    assert SECRET not in spans.text()
    assert "combination" not in spans.text()
    assert "one-workspace" not in spans.text()  # the key


async def test_nothing_is_recorded_while_tracing_is_off() -> None:
    async with deployment(FakeEngine()) as memory:
        with spans_kept() as spans:
            pass
        await memory.search(SECRET)
        assert tracing.here() is None
    assert spans.all() == ()


async def test_calls_that_share_a_batch_are_linked_from_it() -> None:
    engine, registry = FakeEngine(), CollectorRegistry()
    service = EmbedderService(engine, EmbedderSettings(bulk_threads=1), metrics=EmbedderMetrics(registry))
    await service.start()

    async def embed(text: str) -> None:
        with tracing.span(f"caller {text}"):
            await service.embed([text], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=30)

    async def waiting() -> float:
        return registry.get_sample_value("memoryd_embedder_waiting_texts", {"lane": Lane.BULK}) or 0.0

    with spans_kept() as spans:
        while engine.entered.acquire(blocking=False):
            pass
        engine.open.clear()
        calls = [asyncio.create_task(embed("stuck"))]
        assert await asyncio.to_thread(engine.entered.acquire, timeout=30)
        calls += [asyncio.create_task(embed(text)) for text in ("first", "other")]
        await eventually(waiting, 2.0)
        engine.open.set()
        await asyncio.gather(*calls)
        await service.close()  # its threads have ended, so their spans have
    names = {each.context.span_id: each.name for each in spans.all()}
    batches = [each for each in spans.all() if each.name == "embedder.batch"]
    assert [{names[link.context.span_id] for link in each.links} for each in batches] == [
        {"caller stuck"},
        {"caller first", "caller other"},
    ]
    assert [names[each.parent.span_id] for each in batches if each.parent] == ["caller stuck", "caller first"]


async def test_a_batch_that_fails_says_so_without_the_text() -> None:
    engine = FakeEngine()

    def fault(batch: object) -> None:
        raise ZeroDivisionError(SECRET)

    service = EmbedderService(engine, EmbedderSettings(bulk_threads=1), metrics=EmbedderMetrics(CollectorRegistry()))
    await service.start()
    engine.fault = fault
    with spans_kept() as spans:
        with pytest.raises(MemorydError), tracing.span("caller"):
            await service.embed([SECRET], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=30)
        await service.close()
    assert {each.name: each.status.description for each in spans.all()} == {
        "embedder.batch": "ZeroDivisionError",
        "caller": "UNAVAILABLE",
    }
    assert SECRET not in spans.text()


async def test_an_error_is_named_by_its_reason_alone() -> None:
    async with gateway_client(Gateway()) as memory:
        with spans_kept() as spans, pytest.raises(MemorydError):
            await memory.get("../" + SECRET)
    assert len(spans.all()) == 2
    for each in spans.all():
        assert each.attributes is not None
        assert (each.status.status_code, each.status.description) == (StatusCode.ERROR, "INVALID_INPUT")
        assert each.attributes["rpc.grpc.status_code"] == 3
    assert SECRET not in spans.text()


async def test_each_group_of_files_is_a_span_with_its_stages() -> None:
    world = World(Engines.in_memory())
    with spans_kept() as spans:
        await world.write(f"memory/{SECRET}.md", section(SECRET))
        await world.start()
        await world.idle()
        await world.stop()
    assert spans.parents() == {
        ("indexer.group", ""),
        ("indexer.embed", "indexer.group"),
        ("indexer.write", "indexer.group"),
    }
    group = spans.one("indexer.group")
    assert group.attributes is not None
    assert (group.attributes["memoryd.files"], group.attributes["memoryd.chunks"]) == (1, 1)
    assert SECRET not in spans.text()


async def test_log_lines_name_the_trace() -> None:
    bound: list[dict[str, object]] = []

    async def look(request: bytes, context: object) -> bytes:
        bound.append(structlog.contextvars.get_contextvars())
        return request

    async with serving(echo_server(look)) as channel:
        await call(channel)
        with spans_kept() as spans:
            await call(channel)
    assert "trace_id" not in bound[0]
    assert bound[1]["trace_id"] == f"{spans.one(METHOD[1:]).context.trace_id:032x}"


async def test_a_program_s_own_traces_go_on_through_its_client() -> None:
    """Without exporting anything by itself, it hands the program's span on."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    seen: list[object] = []

    async def look(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        seen.append(dict(context.invocation_metadata() or ()).get("traceparent"))
        return request

    async with serving(echo_server(look)) as channel:
        with tracer.start_as_current_span("the agent's turn") as turn, tracing.from_program("grpc", "x/Call") as span:
            known = (("authorization", "Bearer s3cret"), *span.metadata)
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
            await method(b"x", metadata=known)
    assert str(seen[0]).startswith(f"00-{turn.get_span_context().trace_id:032x}-")
    assert [each.name for each in exporter.get_finished_spans()] == ["the agent's turn"]
