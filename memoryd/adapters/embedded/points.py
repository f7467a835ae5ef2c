"""Chunks and filters in the terms of qdrant-edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import qdrant_edge as edge

from memoryd.adapters.payloads import SCOPE_FIELD, to_embedded_payload
from memoryd.domain.files import Source
from memoryd.domain.names import Scope
from memoryd.ports import EmbeddedChunk, Filter

INDEXES: dict[str, Any] = {
    SCOPE_FIELD: edge.KeywordIndexParams(is_tenant=True),
    "tenant": edge.KeywordIndexParams(),
    "path": edge.KeywordIndexParams(prefix=True),
    "text_hash": edge.KeywordIndexParams(),
    "source": edge.KeywordIndexParams(),
    "date": edge.DatetimeIndexParams(),
    "private": edge.IntegerIndexParams(lookup=True, range=False),
    "tags": edge.KeywordIndexParams(),
}


def point(embedded: EmbeddedChunk) -> edge.Point:
    """Make a point of a chunk."""
    return edge.Point(embedded.chunk.id, embedded.vector.tolist(), to_embedded_payload(embedded))


def equals(field: str, value: str) -> edge.FieldCondition:
    """Ask for one value."""
    return edge.FieldCondition(field, match=edge.MatchValue(value))


def any_of(field: str, values: list[str]) -> edge.FieldCondition:
    """Ask for one of several values."""
    return edge.FieldCondition(field, match=edge.MatchAny(values))


def in_scope(scope: Scope) -> list[edge.ConditionType]:
    """Ask for one workspace."""
    return [equals(SCOPE_FIELD, str(scope))]


def with_ids(scope: Scope, ids: Sequence[str]) -> edge.Filter:
    """Ask for some chunks of a workspace."""
    return edge.Filter(must=[*in_scope(scope), edge.HasIdCondition(set(ids))])


def condition(where: Filter) -> edge.Filter:
    """Translate a filter of the port."""
    must = in_scope(where.scope)
    if where.sources != frozenset(Source):
        must.append(any_of("source", sorted(where.sources)))
    if where.path_prefix:
        must.append(edge.FieldCondition("path", match=edge.MatchPrefix(where.path_prefix)))
    if where.since or where.until:
        dates = edge.RangeDateTime(gte=where.since or None, lte=where.until or None)
        undated = edge.IsEmptyCondition("date")
        must.append(edge.Filter(should=[edge.FieldCondition("date", range=dates), undated]))
    if not where.include_private:
        must.append(edge.FieldCondition("private", match=edge.MatchValue(0)))
    must += [equals("tags", tag) for tag in sorted(where.tags)]
    if where.paths is not None:
        must.append(any_of("path", sorted(where.paths)))
    if where.ids is not None:
        must.append(edge.HasIdCondition(set(where.ids)))
    return edge.Filter(must=must)
