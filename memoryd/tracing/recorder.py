"""Spans by OpenTelemetry's API. Imported only where some are recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TracerProvider

from memoryd.errors import MemorydError


class Recorder:
    """Makes spans with a provider's tracer."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("memoryd", version("memoryd"))

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, object]) -> Iterator[Recorded]:
        """See `memoryd.tracing.span`."""
        with Recorded(self._tracer.start_span(name, attributes=_named(attributes))).current() as recorded:
            yield recorded

    def open_span(self, name: str, attributes: Mapping[str, object]) -> Recorded:
        """See `memoryd.tracing.open_span`."""
        return Recorded(self._tracer.start_span(name, attributes=_named(attributes)))

    def past(self, name: str, seconds: float, attributes: Mapping[str, object]) -> None:
        """See `memoryd.tracing.past`."""
        self._tracer.start_span(name, start_time=_ago(seconds), attributes=_named(attributes)).end()

    @contextmanager
    def serving(
        self, system: str, method: str, metadata: Mapping[str, str], attributes: Mapping[str, object]
    ) -> Iterator[Recorded]:
        """See `memoryd.tracing.serving`."""
        caller = propagate.extract(metadata, Context())  # what is current here has nothing to do with the caller
        span = self._tracer.start_span(
            method.lstrip("/"), caller, SpanKind.SERVER, attributes=_rpc(system, method) | _named(attributes)
        )
        with Recorded(span).current() as recorded:
            yield recorded

    @contextmanager
    def calling(self, system: str, method: str) -> Iterator[Recorded]:
        """See `memoryd.tracing.calling`."""
        span = self._tracer.start_span(method.lstrip("/"), kind=SpanKind.CLIENT, attributes=_rpc(system, method))
        with Recorded(span).ending() as recorded:
            yield recorded

    def here(self) -> SpanContext | None:
        """See `memoryd.tracing.here`."""
        context = trace.get_current_span().get_span_context()
        return context if context.trace_flags.sampled else None

    def batch(
        self, name: str, wheres: Sequence[SpanContext], seconds: float, failed: str, attributes: Mapping[str, object]
    ) -> None:
        """See `memoryd.tracing.batch`."""
        if not wheres:
            return
        below = trace.set_span_in_context(NonRecordingSpan(wheres[0]), Context())
        span = self._tracer.start_span(
            name,
            below,
            attributes=_named(attributes),
            links=[Link(where) for where in {where.span_id: where for where in wheres}.values()],
            start_time=_ago(seconds),
        )
        recorded = Recorded(span)
        if failed:
            recorded.failed(failed)
        recorded.end()


class Recorded:
    """A span; see `memoryd.tracing.Outgoing`."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._failed = False

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Name the span, in the form that OTEL_PROPAGATORS asks for."""
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(self._span))
        return tuple(carrier.items())

    @property
    def logged(self) -> Mapping[str, str]:
        """Name its trace, as a collector does."""
        context = self._span.get_span_context()
        return {"trace_id": trace.format_trace_id(context.trace_id)} if context.trace_flags.sampled else {}

    def note(self, **attributes: object) -> None:
        """Add attributes."""
        self._span.set_attributes(_named(attributes))

    def answered(self, code: int) -> None:
        """Note gRPC's status code."""
        self._span.set_attribute("rpc.grpc.status_code", code)

    def failed(self, reason: str) -> None:
        """Mark it as failed; the first reason counts."""
        if not self._failed:
            self._span.set_status(Status(StatusCode.ERROR, reason))
        self._failed = True

    @contextmanager
    def within(self) -> Iterator[None]:
        """Make it current."""
        with trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    def end(self) -> None:
        """End it."""
        self._span.end()

    @contextmanager
    def ending(self) -> Iterator[Recorded]:
        """End it with the block, as failed where an error leaves that."""
        try:
            yield self
        except BaseException as error:
            self.failed(error.reason if isinstance(error, MemorydError) else type(error).__name__)
            raise
        finally:
            self.end()

    @contextmanager
    def current(self) -> Iterator[Recorded]:
        """Make it current, and end it with the block."""
        with self.ending(), self.within():
            yield self


def _ago(seconds: float) -> int:
    return time.time_ns() - int(seconds * 1e9)


def _named(attributes: Mapping[str, object]) -> dict[str, str | bool | int | float]:
    return {
        f"memoryd.{name}": value for name, value in attributes.items() if isinstance(value, str | bool | int | float)
    }


def _rpc(system: str, method: str) -> dict[str, str | bool | int | float]:
    service, _, name = method.lstrip("/").rpartition("/")
    return {"rpc.system": system, "rpc.service": service, "rpc.method": name}
