"""SearchAnswer ↔ MemorySearchResponse."""

from __future__ import annotations

from memoryd.domain.files import Problem, Revision, Source
from memoryd.domain.queries import Degraded, Mode, ModelInfo, SearchAnswer, SearchQuery, SearchResult, Stage
from memoryd.v1 import common_pb2, memory_pb2
from memoryd.wire.enums import number, required
from memoryd.wire.models import model_to

_MODE = common_pb2.SearchMode.DESCRIPTOR
_STAGE = common_pb2.Stage.DESCRIPTOR
_SOURCE = common_pb2.Source.DESCRIPTOR


def answer_to(answer: SearchAnswer, query: SearchQuery) -> memory_pb2.MemorySearchResponse:
    """Write the answer to a query down."""
    return memory_pb2.MemorySearchResponse(
        results=map(_result_to, answer.results),
        mode=number(answer.mode, _MODE),
        model=model_to(answer.model) if answer.model else None,
        fallback=answer.differs_from(query),
        citations=answer.citations,
        stale=answer.stale,
        pending=answer.pending,
        degraded=[
            memory_pb2.Degraded(
                stage=number(entry.stage, _STAGE), reason=entry.reason, detail=entry.detail, instead=entry.instead
            )
            for entry in answer.degraded
        ],
        timings=[
            memory_pb2.Timing(stage=number(stage, _STAGE), milliseconds=milliseconds)
            for stage, milliseconds in answer.timings.items()
        ],
        revision=answer.revision,
        set_aside=memory_pb2.QuarantinedFile(
            path=query.freshness.path if query.freshness else "",
            reason=answer.set_aside.reason,
            detail=answer.set_aside.detail,
        )
        if answer.set_aside
        else None,
    )


def answer_from(response: memory_pb2.MemorySearchResponse, model: ModelInfo | None) -> SearchAnswer:
    """Read an answer; its model comes beside it. Raises InvalidInputError, ValueError for what has no meaning here."""
    return SearchAnswer(
        results=tuple(map(_result_from, response.results)),
        mode=required("mode", response.mode, _MODE, Mode),
        model=model,
        citations=response.citations,
        pending=response.pending,
        behind=response.stale and not response.pending and not response.HasField("set_aside"),
        degraded=tuple(
            Degraded(required("stage", entry.stage, _STAGE, Stage), entry.reason, entry.detail, entry.instead)
            for entry in response.degraded
        ),
        timings={required("stage", timing.stage, _STAGE, Stage): timing.milliseconds for timing in response.timings},
        revision=response.revision,
        set_aside=Problem(response.set_aside.reason, response.set_aside.detail)
        if response.HasField("set_aside")
        else None,
    )


def answer_facts(answer: SearchAnswer) -> dict[str, object]:
    """Say in a call's log line what was found, and nothing of what was asked."""
    return {
        "results": len(answer.results),
        "mode": answer.mode.value,
        "pending": answer.pending,
        "degraded": [f"{entry.stage.value}:{entry.reason}" for entry in answer.degraded],
    }


def _result_to(result: SearchResult) -> memory_pb2.SearchResult:
    return memory_pb2.SearchResult(
        path=result.path,
        start_line=result.start_line,
        end_line=result.end_line,
        score=result.score,
        vector_score=result.vector_score,
        text_score=result.text_score,
        rerank_score=result.rerank_score,
        snippet=result.snippet,
        source=number(result.source, _SOURCE),
        citation=result.citation,
        file_hash=result.file_hash,
        heading=result.heading,
        revision=result.revision.token,
        explanation=result.explanation,
        stale=result.stale,
    )


def _result_from(result: memory_pb2.SearchResult) -> SearchResult:
    return SearchResult(
        path=result.path,
        start_line=result.start_line,
        end_line=result.end_line,
        score=result.score,
        vector_score=result.vector_score if result.HasField("vector_score") else None,
        text_score=result.text_score if result.HasField("text_score") else None,
        rerank_score=result.rerank_score if result.HasField("rerank_score") else None,
        snippet=result.snippet,
        source=required("source", result.source, _SOURCE, Source),
        citation=result.citation,
        file_hash=result.file_hash,
        heading=result.heading,
        revision=Revision.parse(result.revision),
        explanation=tuple(result.explanation),
        stale=result.stale,
    )
