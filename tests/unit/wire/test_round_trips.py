"""What is written down is read again as it was, through the bytes of a message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.files import Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.queries import (
    Chat,
    CitationMode,
    Degraded,
    Freshness,
    Mode,
    ModelInfo,
    Rerank,
    SearchAnswer,
    SearchQuery,
    SearchResult,
    Stage,
    TypedKind,
    TypedQuery,
)
from memoryd.ports import FileWarning, IndexFailure, IndexStatus, QuarantinedFile
from memoryd.v1 import common_pb2, memory_pb2
from memoryd.wire.answers import answer_from, answer_to
from memoryd.wire.models import model_from, model_to
from memoryd.wire.queries import query_from, query_to
from memoryd.wire.statuses import status_from, status_to

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNT = st.integers(0, 2**32 - 1)
LONG = st.integers(0, 2**64 - 1)
NUMBER = st.floats(allow_nan=False)
REVISION = st.builds(Revision, st.integers(0, 2**40), st.integers(0, 2**40))
SCOPE = Scope("acme", "main")

QUERY = st.builds(
    SearchQuery,
    text=TEXT,
    max_results=COUNT,
    min_score=NUMBER,
    sources=st.sampled_from([frozenset(Source), *(frozenset({source}) for source in Source)]),
    path_prefix=TEXT,
    since=TEXT,
    until=TEXT,
    mode=st.sampled_from(Mode),
    rerank=st.sampled_from(Rerank),
    mmr_lambda=st.none() | NUMBER,
    decay_half_life_days=st.none() | NUMBER,
    freshness=st.none()
    | st.builds(Freshness, TEXT, REVISION, st.integers(0, 30_000).map(lambda milliseconds: milliseconds / 1000)),
    explain=st.booleans(),
    chat=st.sampled_from(Chat),
    typed=st.lists(st.builds(TypedQuery, st.sampled_from(TypedKind), TEXT), max_size=3).map(tuple),
    citations=st.sampled_from(CitationMode),
)
MODEL = st.builds(ModelInfo, TEXT, TEXT, COUNT, COUNT, NUMBER, NUMBER, TEXT, TEXT)
RESULT = st.builds(
    SearchResult,
    path=TEXT,
    start_line=COUNT,
    end_line=COUNT,
    score=NUMBER,
    vector_score=st.none() | NUMBER,
    text_score=st.none() | NUMBER,
    rerank_score=st.none() | NUMBER,
    snippet=TEXT,
    source=st.sampled_from(Source),
    citation=TEXT,
    file_hash=TEXT,
    heading=TEXT,
    revision=REVISION,
    explanation=st.lists(TEXT, max_size=3).map(tuple),
)
ANSWER = st.builds(
    SearchAnswer,
    results=st.lists(RESULT, max_size=3).map(tuple),
    mode=st.sampled_from(Mode),
    model=st.none() | MODEL,
    citations=st.booleans(),
    pending=LONG,
    degraded=st.lists(st.builds(Degraded, st.sampled_from(Stage), TEXT, TEXT, TEXT), max_size=3).map(tuple),
    timings=st.dictionaries(st.sampled_from(Stage), NUMBER),
    revision=TEXT,
)
STATUS = st.builds(
    IndexStatus,
    scope=st.just(SCOPE),
    files=LONG,
    chunks=LONG,
    pending=LONG,
    quarantined=st.lists(st.builds(QuarantinedFile, TEXT, st.builds(Problem, TEXT, TEXT)), max_size=3).map(tuple),
    revision=TEXT,
    lag=NUMBER,
    checked=NUMBER,
    failure=st.none() | st.builds(IndexFailure, TEXT, TEXT, TEXT, NUMBER, ongoing=st.booleans()),
)


@given(QUERY)
def test_query(query: SearchQuery) -> None:
    assert query_from(memory_pb2.MemorySearchRequest.FromString(query_to(query).SerializeToString())) == query


@given(ANSWER, QUERY)
def test_answer(answer: SearchAnswer, query: SearchQuery) -> None:
    message = memory_pb2.MemorySearchResponse.FromString(answer_to(answer, query).SerializeToString())
    assert answer_from(message, answer.model) == answer
    assert message.stale == (answer.pending > 0)
    assert message.fallback == (bool(answer.degraded) or answer.mode != query.mode)
    assert message.HasField("model") == (answer.model is not None)


@given(MODEL)
def test_model(model: ModelInfo) -> None:
    message = common_pb2.Model.FromString(model_to(model).SerializeToString())
    assert model_from(message, model.unrelated, model.related) == model


@given(STATUS)
def test_status(status: IndexStatus) -> None:
    assert status_from(memory_pb2.WorkspaceStatus.FromString(status_to(status).SerializeToString()), SCOPE) == status


def test_no_field_is_forgotten() -> None:
    query = SearchQuery(
        "boiler",
        path_prefix="a",
        since="2026-01-01",
        until="2026-01-02",
        mmr_lambda=0.5,
        decay_half_life_days=30.0,
        freshness=Freshness("a.md", Revision(1, 1)),
        explain=True,
        typed=(TypedQuery(TypedKind.VEC, "x"),),
        tags=("t",),
        glob="*",
    )
    result = SearchResult(
        "a.md", 1, 2, 0.5, 0.5, 0.5, 0.5, "s", Source.MEMORY, "c", "h", "b", Revision(1, 1), ("e",), stale=True
    )
    answer = SearchAnswer(
        results=(result,),
        mode=Mode.TEXT,
        model=ModelInfo("m", "f", 4, 128, 0.1, 0.7, "onnx"),
        citations=True,
        pending=1,
        degraded=(Degraded(Stage.EMBED, "R", "d", "i"),),
        timings={Stage.FUSE: 1.0},
        revision="1",
        set_aside=Problem("R", "d"),
    )
    failure = IndexFailure("write", "R", "d", 1.0, ongoing=True)
    status = IndexStatus(SCOPE, 1, 1, 1, (QuarantinedFile("a.md", Problem("R", "d")),), "1", 1.0, 1.0, failure)
    status = replace(status, warnings=(FileWarning("a.md", "w"),))
    assert unset(query_to(query)) == {"workspace"}  # beside the message, with the tenant
    response = answer_to(answer, query)
    assert unset(response) == set()
    for part in (response.results[0], response.model, response.degraded[0], response.timings[0]):
        assert unset(part) == set()
    assert unset(status_to(status)) == {"available", "problem", "reconciled_at"}  # the gateway's to tell


def unset(message: Message) -> set[str]:
    """Names the fields of a message that have no value."""
    descriptor: Any = message.DESCRIPTOR
    return {field.name for field in descriptor.fields} - {field.name for field, _ in message.ListFields()}
