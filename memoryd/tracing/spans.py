"""What the services call: a recorder where one is set up, nothing where none is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # imported only where spans are recorded
    from opentelemetry.trace import SpanContext, TracerProvider

    from memoryd.tracing.recorder import Recorder

Attribute = str | bool | int | float


class Span(Protocol):
    """Work that takes time."""

    @property
    def logged(self) -> Mapping[str, str]:
        """What leads from a log line to it: `trace_id`; nothing where it is not recorded."""
        ...

    def note(self, **attributes: object) -> None:
        """Add attributes, named `memoryd.…`; what is no text and no number is left out."""
        ...

    def answered(self, code: int) -> None:
        """Note gRPC's status code, of a call."""
        ...

    def failed(self, reason: str) -> None:
        """Mark it as failed, if it is not yet; the reason is one of our own, no message: that may quote a text."""
        ...

    def within(self) -> AbstractContextManager[None]:
        """Make it the parent of what begins in the block."""
        ...

    def end(self) -> None:
        """End a span that was opened by `open_span`."""
        ...


class Outgoing(Span, Protocol):
    """A call to another process."""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What tells the other process which span called."""
        ...


class Where(Protocol):
    """A place in a trace, to be named from elsewhere."""


class _Nothing:
    metadata: tuple[tuple[str, str], ...] = ()
    logged: Mapping[str, str] = MappingProxyType({})

    def note(self, **attributes: object) -> None:
        pass

    def answered(self, code: int) -> None:
        pass

    def failed(self, reason: str) -> None:
        pass

    def within(self) -> AbstractContextManager[None]:
        return _IN_NOTHING

    def end(self) -> None:
        pass


_NOTHING = _Nothing()
_OFF = nullcontext(_NOTHING)
_IN_NOTHING = nullcontext(None)
_recorder: Recorder | None = None


@contextmanager
def recorded(provider: TracerProvider) -> Iterator[None]:
    """Record the spans of this process with a provider until the block ends."""
    global _recorder  # noqa: PLW0603  (one a process, as OpenTelemetry's own)
    from memoryd.tracing.recorder import Recorder  # noqa: PLC0415  (see the package's docstring)

    before, _recorder = _recorder, Recorder(provider)
    try:
        yield
    finally:
        _recorder = before


def span(name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
    """Do the block's work in a span below the current one; an error that leaves it marks it as failed."""
    return _recorder.span(name, attributes) if _recorder else _OFF


def open_span(name: str, **attributes: Attribute) -> Span:
    """Begin a span that goes through several tasks: it is current only `within` it, and must be ended."""
    return _recorder.open_span(name, attributes) if _recorder else _NOTHING


def past(name: str, seconds: float, **attributes: Attribute) -> None:
    """Add a span below the current one that ends now and has taken `seconds`."""
    if _recorder:
        _recorder.past(name, seconds, attributes)


def serving(
    system: str, method: str, metadata: Mapping[str, str], **attributes: Attribute
) -> AbstractContextManager[Span]:
    """Answer a call in a span below the caller's, which its metadata names.

    Args:
        system: by what it came: grpc or nats.
        method: full name.
        metadata: its textual metadata.
        attributes: as those of `span`.
    """
    return _recorder.serving(system, method, metadata, attributes) if _recorder else _OFF


def calling(system: str, method: str) -> AbstractContextManager[Outgoing]:
    """Call another process in a span below the current one, which is not made current."""
    return _recorder.calling(system, method) if _recorder else _OFF


def from_program(system: str, method: str) -> AbstractContextManager[Outgoing]:
    """As `calling`, in a program of somebody else: part of its traces where it has set OpenTelemetry up."""
    if _recorder or "opentelemetry.trace" not in sys.modules:
        return calling(system, method)
    from opentelemetry.trace import get_tracer_provider  # noqa: PLC0415  (it is there)

    from memoryd.tracing.recorder import Recorder  # noqa: PLC0415  (as above)

    return Recorder(get_tracer_provider()).calling(system, method)


def here() -> SpanContext | None:
    """Name the current span, if it is recorded."""
    return _recorder.here() if _recorder else None


def batch(
    name: str, wheres: Sequence[SpanContext | None], seconds: float, *, failed: str = "", **attributes: Attribute
) -> None:
    """Add a span of work that was done for several others at a time, and ends now.

    It is below the first of them that is recorded, and linked with each; where none is recorded, there is no span.
    """
    if _recorder:
        _recorder.batch(name, [where for where in wheres if where], seconds, failed, attributes)
