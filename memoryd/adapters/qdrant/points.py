"""Chunks and filters in the terms of Qdrant's API: those of `memoryd.adapters.embedded.points`, over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from qdrant_client import models

from memoryd.adapters.payloads import SCOPE_FIELD, to_embedded_payload
from memoryd.domain.files import Source
from memoryd.domain.names import Scope
from memoryd.ports import EmbeddedChunk, Filter

_KEYWORD = models.KeywordIndexType.KEYWORD

# A graph is built within each workspace and for no other field: every search names one.
INDEXES: dict[str, models.PayloadSchemaParams] = {
    SCOPE_FIELD: models.KeywordIndexParams(type=_KEYWORD, is_tenant=True),
    "tenant": models.KeywordIndexParams(type=_KEYWORD, enable_hnsw=False),
    "path": models.KeywordIndexParams(type=_KEYWORD, prefix=True, enable_hnsw=False),
    "text_hash": models.KeywordIndexParams(type=_KEYWORD, enable_hnsw=False),
    "source": models.KeywordIndexParams(type=_KEYWORD, enable_hnsw=False),
    "date": models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME, enable_hnsw=False),
    "private": models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=True, range=False, enable_hnsw=False
    ),
    "tags": models.KeywordIndexParams(type=_KEYWORD, enable_hnsw=False),
}


def point(embedded: EmbeddedChunk) -> models.PointStruct:
    """Make a point of a chunk."""
    return models.PointStruct(
        id=embedded.chunk.id, vector=embedded.vector.tolist(), payload=to_embedded_payload(embedded)
    )


def equals(field: str, value: str | int) -> models.FieldCondition:
    """Ask for one value."""
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def any_of(field: str, values: list[str]) -> models.FieldCondition:
    """Ask for one of several values."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=values))


def in_scope(scope: Scope) -> list[models.Condition]:
    """Ask for one workspace."""
    return [equals(SCOPE_FIELD, str(scope))]


def with_ids(scope: Scope, ids: Sequence[str]) -> models.Filter:
    """Ask for some chunks of a workspace."""
    return models.Filter(must=[*in_scope(scope), models.HasIdCondition(has_id=list(ids))])


def condition(where: Filter) -> models.Filter:
    """Translate a filter of the port."""
    must = in_scope(where.scope)
    if where.sources != frozenset(Source):
        must.append(any_of("source", sorted(where.sources)))
    if where.path_prefix:
        must.append(models.FieldCondition(key="path", match=models.MatchPrefix(prefix=where.path_prefix)))
    if where.since or where.until:
        dates = models.DatetimeRange(gte=_date(where.since), lte=_date(where.until))
        undated = models.IsEmptyCondition(is_empty=models.PayloadField(key="date"))
        must.append(models.Filter(should=[models.FieldCondition(key="date", range=dates), undated]))
    if not where.include_private:
        must.append(equals("private", 0))
    must += [equals("tags", tag) for tag in sorted(where.tags)]
    if where.paths is not None:
        must.append(any_of("path", sorted(where.paths)))
    if where.ids is not None:
        must.append(models.HasIdCondition(has_id=list(where.ids)))
    return models.Filter(must=must)


def _date(text: str) -> date | None:
    return date.fromisoformat(text) if text else None
