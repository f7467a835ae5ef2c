"""Traces by OpenTelemetry: one of a request through all processes.

Off until the standard OTEL_ variables say where spans go: then nothing of OpenTelemetry is imported, and a span costs
a comparison. Spans say what was done and how long it took, never a query, a text or a key.
"""

from memoryd.tracing.export import exported
from memoryd.tracing.spans import (
    Outgoing,
    Span,
    Where,
    batch,
    calling,
    from_program,
    here,
    open_span,
    past,
    serving,
    span,
)

__all__ = [
    "Outgoing",
    "Span",
    "Where",
    "batch",
    "calling",
    "exported",
    "from_program",
    "here",
    "open_span",
    "past",
    "serving",
    "span",
]
