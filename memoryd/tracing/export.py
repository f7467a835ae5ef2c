"""Where spans go: to the collector that the standard OTEL_ variables name."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from memoryd.errors import ConfigError
from memoryd.tracing.spans import recorded

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

_PROTOCOLS = ("grpc", "http/protobuf")
_FLUSH = 5.0  # seconds: a collector that is away must not keep a process from ending

_log = structlog.get_logger(__name__)


@contextmanager
def exported(service: str) -> Iterator[None]:
    """Send the spans of this process to a collector until the block ends; does nothing where none is named.

    One is named by OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT; OTEL_SDK_DISABLED=true and
    OTEL_TRACES_EXPORTER=none switch traces off. The sampler, the service's name, headers, certificates, and all else
    are set by the variables that OpenTelemetry's specification names. Raises ConfigError for a protocol of no use.
    """
    if not _wanted():
        yield
        return
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415  (only where spans are recorded)
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  (as above)
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  (as above)

    resource = Resource.create({} if _set("OTEL_SERVICE_NAME") else {SERVICE_NAME: f"memoryd-{service}"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter()))
    try:
        with recorded(provider):
            yield
    finally:
        ending = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(_FLUSH)


def _wanted() -> bool:
    if _set("OTEL_SDK_DISABLED").lower() == "true":
        return False
    exporters = _set("OTEL_TRACES_EXPORTER")
    if exporters and "otlp" not in exporters.split(","):
        if exporters != "none":
            _log.warning("traces are off: OTEL_TRACES_EXPORTER can only be otlp", exporter=exporters)
        return False
    return bool(_set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or _set("OTEL_EXPORTER_OTLP_ENDPOINT"))


def _exporter() -> SpanExporter:
    protocol = _set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or _set("OTEL_EXPORTER_OTLP_PROTOCOL") or _PROTOCOLS[0]
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol} can't be spoken; take {' or '.join(_PROTOCOLS)}")
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        return OTLPSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  (one of the two)
        OTLPSpanExporter as HttpSpanExporter,
    )

    return HttpSpanExporter()


def _set(name: str) -> str:
    return os.environ.get(name, "").strip()
