"""Chunks, filters and terms in the terms of OpenSearch's API."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.payloads import to_payload
from memoryd.domain.chunks import Chunk
from memoryd.domain.files import Source
from memoryd.domain.names import Scope
from memoryd.domain.text import FIELD_BOOSTS
from memoryd.ports import Filter, QueryTerm

_FIELDS = {"body": "terms", "heading": "heading_terms"}
# OpenSearch refuses a query of more than 1,024 clauses: a term is two, one in each field, and the filter up to 25.
_MAX_TERMS = 490
_K1, _B = 1.2, 0.75  # as Tantivy's
# Lucene leaves the constant factor k1 + 1 out of BM25 (LUCENE-8563), Tantivy does not; scores are to be the same.
_SCALE = _K1 + 1
_KEYWORD = {"type": "keyword"}
# Paths that a glob stands for; OpenSearch would take 65,536.
_MAX_PATHS = 1_000_000
# Frequencies without positions: there are no phrase queries. The analyzer cuts after 255 UTF-16 units: of our terms
# only one of 128 characters beyond the Basic Multilingual Plane is longer.
_TERMS = {"type": "text", "analyzer": "whitespace", "similarity": "terms", "index_options": "freqs"}


def index_body(alias: str, settings: OpenSearchSettings) -> dict[str, Any]:
    """Describe an index. What it does not map is kept, but not searched."""
    return {
        "aliases": {alias: {}},
        "settings": {
            "number_of_shards": 1,  # each shard would score by its own statistics
            "auto_expand_replicas": f"0-{settings.replicas}",
            "max_terms_count": _MAX_PATHS,
            "refresh_interval": f"{settings.refresh_milliseconds}ms",
            "similarity": {"terms": {"type": "BM25", "k1": _K1, "b": _B}},
        },
        "mappings": {
            "dynamic": False,
            "properties": {
                **dict.fromkeys(("key", "tenant", "workspace", "path", "source", "tags"), _KEYWORD),
                **dict.fromkeys(_FIELDS.values(), _TERMS),
                "date": {"type": "date", "format": "strict_date"},
                "private": {"type": "byte"},
            },
        },
    }


def document_key(scope: Scope, chunk_id: str) -> str:
    """Name a chunk among those of all scopes."""
    return f"{scope}/{chunk_id}"


def chunk_id(key: str) -> str:
    """Read the chunk's id off its key."""
    return key.rpartition("/")[2]


def to_document(chunk: Chunk) -> dict[str, Any]:
    """Make the document of a chunk. Its key is a field too: documents can be sorted by a field only."""
    return {"key": document_key(chunk.key.scope, chunk.id), **to_payload(chunk)}


def search_query(terms: Sequence[QueryTerm], where: Filter) -> dict[str, Any]:
    """Ask for chunks that hold any of the terms and pass the filter.

    The score is the sum over terms and fields of BM25 × weight × boost; the filter adds nothing to it. Of more terms
    than OpenSearch takes the heaviest count.
    """
    weights: dict[str, float] = {}
    for term in terms:
        weights[term.term] = weights.get(term.term, 0.0) + term.weight
    clauses = [
        {"term": {_FIELDS[field]: {"value": term, "boost": weight * boost * _SCALE}}}
        for term, weight in heapq.nlargest(_MAX_TERMS, weights.items(), key=lambda item: item[1])
        for field, boost in FIELD_BOOSTS.items()
    ]
    return {"bool": {"should": clauses, "minimum_should_match": 1, "filter": list(_filters(where))}}


def scan_query(scope: Scope, path: str | None) -> dict[str, Any]:
    """Ask for all chunks of a workspace, or of one of its files."""
    return {"bool": {"filter": [*_in_scope(scope), *([] if path is None else [{"term": {"path": path}}])]}}


def named_query(scope: Scope, ids: Iterable[str]) -> dict[str, Any]:
    """Ask for chunks of a workspace by id."""
    return {"bool": {"filter": [*_in_scope(scope), _named(scope, ids)]}}


def _named(scope: Scope, ids: Iterable[str]) -> dict[str, Any]:
    return {"ids": {"values": [document_key(scope, each) for each in ids]}}


def _in_scope(scope: Scope) -> list[dict[str, Any]]:
    return [{"term": {"tenant": scope.tenant}}, {"term": {"workspace": scope.workspace}}]


def _filters(where: Filter) -> Iterator[dict[str, Any]]:
    yield from _in_scope(where.scope)
    if where.sources != frozenset(Source):
        yield {"terms": {"source": sorted(where.sources)}}
    if where.path_prefix:
        yield {"prefix": {"path": where.path_prefix}}
    if not where.include_private:
        yield {"term": {"private": 0}}
    for tag in sorted(where.tags):
        yield {"term": {"tags": tag}}
    if where.paths is not None:
        yield {"terms": {"path": sorted(where.paths)}}
    if where.ids is not None:
        yield _named(where.scope, where.ids)
    if where.since or where.until:
        bounds = {name: day for name, day in (("gte", where.since), ("lte", where.until)) if day}
        undated = {"bool": {"must_not": {"exists": {"field": "date"}}}}
        yield {"bool": {"should": [{"range": {"date": bounds}}, undated]}}
