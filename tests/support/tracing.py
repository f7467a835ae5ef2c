"""Spans kept in memory, and a collector on a port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memoryd.tracing.spans import recorded


class Spans:
    """What was recorded so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> Sequence[ReadableSpan]:
        """All of them, in the order in which they ended."""
        return self._exporter.get_finished_spans()

    def parents(self) -> set[tuple[str, str]]:
        """Names of spans, each with its parent's, of the same trace; "" where there is none."""
        names = {(each.context.trace_id, each.context.span_id): each.name for each in self.all()}
        return {
            (each.name, names[each.context.trace_id, each.parent.span_id] if each.parent else "") for each in self.all()
        }

    def one(self, name: str) -> ReadableSpan:
        """The only span of a name that is no call to another process."""
        (found,) = [each for each in self.all() if each.name == name and each.kind.name != "CLIENT"]
        return found

    def text(self) -> str:
        """Everything that would be exported."""
        return "\n".join(each.to_json() for each in self.all())


@contextmanager
def spans_kept() -> Iterator[Spans]:
    """Record the spans of this process until the block ends."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with recorded(provider):
        yield Spans(exporter)


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans over OTLP; `names` of those that came, and their services."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.services: set[str] = set()

    def take(self, request: trace_service_pb2.ExportTraceServiceRequest) -> None:
        """Remember what a request brings."""
        for resource in request.resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.services.add(attributes["service.name"])
            self.names += [span.name for scope in resource.scope_spans for span in scope.spans]

    async def Export(  # noqa: N802  (the name in the proto file)
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.take(request)
        return trace_service_pb2.ExportTraceServiceResponse()


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Collector, str]]:
    """Run a collector; gives its URL."""
    collector, server = Collector(), grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]  # generated
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield collector, f"http://127.0.0.1:{port}"
    finally:
        await server.stop(None)
