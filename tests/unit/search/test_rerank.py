"""The rerank stage: token sketches, a cross-encoder, and what is done where they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import structlog

from memoryd.domain.names import Scope
from memoryd.domain.queries import (
    DEFAULT_MIN_SCORE,
    Mode,
    ModelInfo,
    Rerank,
    SearchAnswer,
    Stage,
    TypedKind,
    TypedQuery,
)
from memoryd.domain.scoring import COMMITTED, Calibration, Scoring
from memoryd.errors import UnavailableError
from memoryd.ports import Embeddings
from services.search.settings import SearchSettings
from tests.support.fakes import FakeEmbedder, MemoryVectorStore, sketch_of
from tests.support.searching import SCOPE, World


@dataclass
class CrossEncoder(FakeEmbedder):
    """Scores a text by whether it holds a word."""

    word: str = "bus"
    error: Exception | None = None
    answer: Sequence[float] | None = None
    reranks: bool = True
    scoring: Scoring | None = None
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(sketches=True)

    async def info(self) -> ModelInfo:
        return replace(await super().info(), reranks=self.reranks, scoring=self.scoring)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        self.texts = list(texts)
        if self.error:
            raise self.error
        return [float(self.word in text) for text in texts] if self.answer is None else self.answer


class Store(MemoryVectorStore):
    """Raises, or is late, when sketches are read."""

    error: Exception | None = None
    delay = 0.0
    asked: Sequence[str] = ()
    reads = 0

    async def sketches(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, bytes]:
        self.asked = ids
        self.reads += 1
        await asyncio.sleep(self.delay)
        if self.error:
            raise self.error
        return await super().sketches(scope, ids)


class Harbour(World):
    """A search whose chunks have sketches."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401  (of the settings)
        super().__init__()
        self.model = CrossEncoder(reranks=False)
        self.store = Store()
        self.vectors.store = self.store
        self.service.embedder = self.embedder = self.model
        self.service.settings = SearchSettings(answer_cache_bytes=0, **settings)
        self.service.__post_init__()

    async def fill(self) -> Harbour:
        await self.log.subscribe("indexer")
        await self.put("a.md", "the ferry leaves the harbour", "a bus leaves the square")
        await self.put("b.md", "the harbour is closed")
        for name, chunk in self.store.held.items():
            self.store.sketched[name] = sketch_of(chunk.text)
        return self


@pytest.fixture
async def harbour() -> Harbour:
    return await Harbour().fill()


def snippets(answer: SearchAnswer) -> list[str]:
    return [result.snippet for result in answer.results]


async def test_sketches_order_and_their_match_is_shown(harbour: Harbour) -> None:
    answer = await harbour.search("square leaves", explain=True, mode=Mode.VECTOR)
    assert answer.degraded == ()
    assert Stage.RERANK in answer.timings
    first, *others = answer.results
    assert first.snippet == "a bus leaves the square"
    assert first.rerank_score is not None
    assert all((first.rerank_score, first.score) > (other.rerank_score or 0.0, other.score) for other in others)
    told = "\n".join(first.explanation)
    for step in ("vector: cosine", "fused:", "token sketches: match", "calibrated: order", "score:"):
        assert step in told


@pytest.mark.parametrize(("kind", "rerank", "reads"), [("vec", "auto", 2), ("hyde", "auto", 1), ("vec", "off", 0)])
async def test_questions_among_sub_queries_are_compared_by_sketches_too(kind: str, rerank: str, reads: int) -> None:
    harbour = await Harbour(sketch_cache_bytes=0).fill()
    typed = (TypedQuery(TypedKind(kind), "the harbour is closed"),)
    answer = await harbour.search("ferry", typed=typed, rerank=Rerank(rerank), explain=True, max_results=50)
    assert answer.degraded == ()
    assert harbour.store.reads == reads
    told = {result.snippet: "\n".join(result.explanation) for result in answer.results}
    assert "sub-queries: the best gives" in told["the harbour is closed"]


async def test_a_sketch_is_read_once(harbour: Harbour) -> None:
    first = await harbour.search("square leaves")
    assert sorted(harbour.store.asked) == sorted(harbour.store.held)
    again = await harbour.search("square leaves")
    assert (snippets(again), harbour.store.reads) == (snippets(first), 1)
    await harbour.put("c.md", "the pier")
    await harbour.search("square leaves")
    assert [harbour.store.held[name].text for name in harbour.store.asked] == ["the pier"]
    harbour.service.forget(SCOPE)
    await harbour.search("square leaves")
    assert sorted(harbour.store.asked) == sorted(harbour.store.held)


async def test_rerank_off_leaves_the_fused_order(harbour: Harbour) -> None:
    answer = await harbour.search("square leaves", rerank=Rerank.OFF)
    assert Stage.RERANK not in answer.timings
    assert all(result.rerank_score is None for result in answer.results)
    assert harbour.store.asked == ()
    assert answer.degraded == ()


async def test_the_first_results_do_not_depend_on_how_many_are_asked_for(harbour: Harbour) -> None:
    many = snippets(await harbour.search("square leaves", max_results=50))
    assert len(many) == 3
    for count in (1, 2):
        assert snippets(await harbour.search("square leaves", max_results=count)) == many[:count]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnavailableError("down"), "UNAVAILABLE"),
        (ZeroDivisionError("a secret"), "INTERNAL"),
        (None, "DEADLINE_EXCEEDED"),
    ],
    ids=["down", "broken", "late"],
)
async def test_without_sketches_the_fused_order_answers(harbour: Harbour, error: Exception | None, reason: str) -> None:
    expected = await harbour.search("square leaves", rerank=Rerank.OFF)
    harbour.store.error, harbour.store.delay = error, 0.0 if error else 30.0
    answer = await harbour.search("square leaves", timeout=0.3)
    assert [(d.stage, d.reason, d.instead) for d in answer.degraded] == [(Stage.RERANK, reason, "the order before it")]
    assert snippets(answer) == snippets(expected)
    assert [result.score for result in answer.results] == [result.score for result in expected.results]


async def test_sketches_that_are_none_are_a_failure_of_the_stage(harbour: Harbour) -> None:
    harbour.store.sketched = dict.fromkeys(harbour.store.held, b"")
    answer = await harbour.search("square leaves")
    assert answer.degraded == ()  # no chunk has one: the vectors stand in
    assert all(result.rerank_score is None for result in answer.results)


async def test_a_query_without_a_subject_is_not_answered(harbour: Harbour) -> None:
    for query in ("the", "of the", "...", "?!"):
        assert snippets(await harbour.search(query, min_score=0.35)) == []
    assert len(snippets(await harbour.search("the", min_score=0.0))) > 0


async def test_an_exact_hit_of_the_text_leg_alone_is_returned(harbour: Harbour) -> None:
    await harbour.put("c.md", "build tag zx81-qqy-774 shipped")
    for mode in (Mode.HYBRID, Mode.TEXT):
        for rerank in Rerank:
            answer = await harbour.search("zx81-qqy-774", min_score=0.35, mode=mode, rerank=rerank)
            assert "c.md" in [result.path for result in answer.results], (mode, rerank)


async def test_a_stand_in_that_gives_no_tokens_is_named(harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = await harbour.search("square leaves", rerank=Rerank.OFF)
    embed = harbour.model.embed

    async def without(*args: Any, **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        return replace(await embed(*args, **options), query_tokens=())

    with monkeypatch.context() as stand_in:
        stand_in.setattr(harbour.model, "embed", without)
        answer = await harbour.search("square leaves")
    assert [(d.stage, d.reason) for d in answer.degraded] == [(Stage.RERANK, "NO_TOKENS")]
    assert snippets(answer) == snippets(expected)
    assert (await harbour.search("square leaves")).degraded == ()  # and it is not kept


async def test_rerank_on_without_a_cross_encoder_says_so(harbour: Harbour) -> None:
    answer = await harbour.search("square leaves", rerank=Rerank.ON)
    assert [(d.stage, d.reason) for d in answer.degraded] == [(Stage.RERANK, "NO_CROSS_ENCODER")]
    assert snippets(answer) == snippets(await harbour.search("square leaves"))
    assert all(result.rerank_score is not None for result in answer.results)


@pytest.mark.parametrize("rerank", [Rerank.ON, Rerank.AUTO])
async def test_a_cross_encoder_is_blended_in(harbour: Harbour, rerank: Rerank) -> None:
    before = {result.snippet: result.score for result in (await harbour.search("harbour")).results}
    harbour.model.reranks = True
    answer = await harbour.search("harbour", rerank=rerank)
    assert answer.degraded == ()
    after = {result.snippet: result for result in answer.results}
    assert after["a bus leaves the square"].rerank_score == 1.0
    for text, score in before.items():
        assert after[text].score == pytest.approx(0.6 * score + 0.4 * ("bus" in text))
    scores = [result.score for result in answer.results]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("settings", [{"cross_encoder_depth": 1}, {"cross_encoder_tokens": 1}])
async def test_what_a_cross_encoder_does_not_see_stays_behind(settings: dict[str, int]) -> None:
    harbour = await Harbour(**settings).fill()
    before = snippets(await harbour.search("harbour"))
    harbour.model.reranks, harbour.model.word = True, "nothing holds this"
    answer = await harbour.search("harbour", rerank=Rerank.ON)
    assert harbour.model.texts == before[:1]
    assert snippets(answer) == before
    scores = [result.score for result in answer.results]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"error": UnavailableError("down")}, "UNAVAILABLE"),
        ({"answer": [0.5]}, "UNAVAILABLE"),
        ({"answer": [float("nan")] * 3}, "UNAVAILABLE"),
    ],
    ids=["down", "fewer", "no numbers"],
)
async def test_a_cross_encoder_that_fails_changes_nothing(harbour: Harbour, fault: dict[str, Any], reason: str) -> None:
    before = snippets(await harbour.search("harbour"))
    harbour.model.reranks = True
    for name, value in fault.items():
        setattr(harbour.model, name, value)
    answer = await harbour.search("harbour", rerank=Rerank.ON)
    assert [(d.stage, d.reason, d.instead) for d in answer.degraded] == [(Stage.RERANK, reason, "the order before it")]
    assert snippets(answer) == before


@pytest.mark.parametrize(
    ("answer", "seen"), [([1.0, float("nan"), 1.0], 1), ([float("nan"), 1.0, 1.0], 0)], ids=["first", "none"]
)
async def test_what_a_cross_encoder_scored_in_time_counts(harbour: Harbour, answer: list[float], seen: int) -> None:
    before = snippets(await harbour.search("harbour"))
    harbour.model.reranks, harbour.model.answer = True, answer
    found = await harbour.search("harbour", rerank=Rerank.ON)
    (entry,) = found.degraded
    assert (entry.stage, entry.reason) == (Stage.RERANK, "SHORT_OF_TIME")
    assert entry.detail == f"the cross-encoder scored {seen} of 3 candidates in time"
    assert snippets(found) == before


async def test_auto_leaves_a_cross_encoder_out_where_time_is_short(harbour: Harbour) -> None:
    harbour.model.reranks = True
    answer = await harbour.search("harbour", timeout=0.4)
    assert [(d.stage, d.reason) for d in answer.degraded] == [(Stage.RERANK, "SHORT_OF_TIME")]
    assert harbour.model.texts == []


async def test_a_models_own_constants_are_used_and_their_lack_is_said_once(harbour: Harbour) -> None:
    with structlog.testing.capture_logs() as logs:
        borrowed = [await harbour.search() for _ in range(2)]
    assert [entry["model"] for entry in logs if "calibrated_for" in entry] == ["fake"]
    harbour.model.scoring = replace(COMMITTED, hybrid_sketches=Calibration(order=0.01, intercept=-9.0, unfound=0.0))
    with structlog.testing.capture_logs() as logs:
        own = await harbour.search()
    assert logs == []
    first = own.results[0]  # it holds the whole query
    assert first.score == DEFAULT_MIN_SCORE < 0.99 < borrowed[0].results[0].score
