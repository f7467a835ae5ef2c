"""SearchQuery ↔ MemorySearchRequest."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from memoryd.domain.files import Revision, Source
from memoryd.domain.queries import (
    DEFAULT_MIN_SCORE,
    DEFAULT_RESULTS,
    Chat,
    CitationMode,
    Freshness,
    Mode,
    Rerank,
    SearchQuery,
    TypedKind,
    TypedQuery,
)
from memoryd.errors import refuse
from memoryd.v1 import common_pb2, memory_pb2
from memoryd.wire.enums import member, number, required

_DEFAULT_WAIT_MS = 2000
_MODE = common_pb2.SearchMode.DESCRIPTOR
_RERANK = common_pb2.RerankMode.DESCRIPTOR
_CHAT = common_pb2.Chat.DESCRIPTOR
_SOURCE = common_pb2.Source.DESCRIPTOR
_CITATIONS = memory_pb2.Citations.DESCRIPTOR
_KIND = memory_pb2.TypedQuery.Kind.DESCRIPTOR


def query_from(request: memory_pb2.MemorySearchRequest) -> SearchQuery:
    """Read a query. Raises InvalidInputError for an enum's number or a revision that means nothing."""
    return SearchQuery(
        text=request.query,
        max_results=request.max_results if request.HasField("max_results") else DEFAULT_RESULTS,
        min_score=request.min_score if request.HasField("min_score") else DEFAULT_MIN_SCORE,
        sources=_sources_from(request.source),
        path_prefix=request.path_prefix,
        since=request.since,
        until=request.until,
        mode=member("mode", request.mode, _MODE, Mode.HYBRID),
        rerank=member("rerank", request.rerank, _RERANK, Rerank.AUTO),
        mmr_lambda=request.mmr_lambda if request.HasField("mmr_lambda") else None,
        decay_half_life_days=request.decay_half_life_days if request.HasField("decay_half_life_days") else None,
        freshness=_freshness_from(request.freshness) if request.HasField("freshness") else None,
        explain=request.explain,
        chat=chat_from(request.chat),
        typed=tuple(
            TypedQuery(required(f"typed[{index}].kind", typed.kind, _KIND, TypedKind), typed.text)
            for index, typed in enumerate(request.typed)
        ),
        citations=member("citations", request.citations, _CITATIONS, CitationMode.AUTO),
        tags=tuple(request.tags),
        glob=request.glob,
    )


def query_to(query: SearchQuery) -> memory_pb2.MemorySearchRequest:
    """Write a query down; the request names no workspace."""
    return memory_pb2.MemorySearchRequest(
        query=query.text,
        max_results=query.max_results,
        min_score=query.min_score,
        source=_sources_to(query.sources),
        path_prefix=query.path_prefix,
        since=query.since,
        until=query.until,
        mode=number(query.mode, _MODE),
        rerank=number(query.rerank, _RERANK),
        mmr_lambda=query.mmr_lambda,
        decay_half_life_days=query.decay_half_life_days,
        freshness=_freshness_to(query.freshness) if query.freshness else None,
        explain=query.explain,
        chat=number(query.chat, _CHAT),
        typed=[memory_pb2.TypedQuery(kind=number(typed.kind, _KIND), text=typed.text) for typed in query.typed],
        citations=number(query.citations, _CITATIONS),
        tags=query.tags,
        glob=query.glob,
    )


def chat_from(chat: int) -> Chat:
    """Read the kind of conversation that asks."""
    return member("chat", chat, _CHAT, Chat.DIRECT)


def _sources_from(source: int) -> frozenset[Source]:
    if source in {common_pb2.SOURCE_UNSPECIFIED, common_pb2.SOURCE_ALL}:
        return frozenset(Source)
    return frozenset({required("source", source, _SOURCE, Source)})


def _sources_to(sources: AbstractSet[Source]) -> Any:  # noqa: ANN401  (as `number`)
    if sources == frozenset(Source):
        return common_pb2.SOURCE_ALL
    (source,) = sources
    return number(source, _SOURCE)


def _freshness_from(freshness: memory_pb2.Freshness) -> Freshness:
    token = freshness.at_least_revision
    try:
        revision = Revision.parse(token)
    except ValueError:
        refuse("freshness.at_least_revision", token, "is not a revision; pass one as an earlier answer gave it")
    wait_ms = freshness.wait_ms if freshness.HasField("wait_ms") else _DEFAULT_WAIT_MS
    return Freshness(freshness.path, revision, wait_ms / 1000)


def _freshness_to(freshness: Freshness) -> memory_pb2.Freshness:
    return memory_pb2.Freshness(
        path=freshness.path, at_least_revision=freshness.at_least.token, wait_ms=round(freshness.wait * 1000)
    )
