"""Spans on their way to a collector, by the standard variables."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memoryd import tracing
from memoryd.errors import ConfigError
from tests.support.tracing import Collector, collecting


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "PROTOCOL", "TRACES_PROTOCOL"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)
    for name in ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)


def work() -> None:
    with tracing.exported("embedder"), tracing.span("search.embed"):
        pass


async def test_spans_arrive_when_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting() as (collector, url):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        await asyncio.to_thread(work)
    assert (collector.names, collector.services) == (["search.embed"], {"memoryd-embedder"})


async def test_the_service_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting() as (collector, url):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "memory-of-rod")
        await asyncio.to_thread(work)
    assert collector.services == {"memory-of-rod"}


@contextmanager
def http_collector() -> Iterator[tuple[Collector, str]]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield collector, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_collector() as (collector, url):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        work()
    assert collector.names == ["search.embed"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ],
)
async def test_off(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting() as (collector, url):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv(name, value)
        await asyncio.to_thread(work)
    assert collector.names == []


def test_a_protocol_of_no_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon")
    with pytest.raises(ConfigError, match="carrier-pigeon can't be spoken; take grpc or http/protobuf"):
        work()


def test_nothing_of_opentelemetry_is_imported_while_it_is_off() -> None:
    services = ("embedder", "gateway", "indexer", "search", "standalone", "workspace")
    program = (
        f"import sys, {', '.join(f'services.{name}.__main__' for name in services)}\n"
        "from memoryd import tracing\n"
        "with tracing.exported('x'), tracing.span('y') as span:\n"
        "    span.note(z=1)\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
