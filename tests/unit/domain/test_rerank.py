"""Orders by sketches and by a cross-encoder, and what a score says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.calibration import Evidence
from memoryd.domain.rerank import best_coverage, by_cross_encoder, by_sketches, calibrated
from memoryd.domain.scores import Scored, rank
from memoryd.domain.sketches import Matches
from tests.unit.domain.test_scores import candidate

UNIT = st.floats(0, 1)


def fused(*legs: tuple[str, float | None, float | None, float | None]) -> list[Scored]:
    candidates = [candidate(name, cosine=cosine, bm25=bm25, coverage=found) for name, cosine, bm25, found in legs]
    return rank(candidates, unrelated=0.7, related=0.9)


def evident(scored: list[Scored], rare_match: float | None = None) -> Evidence:
    return Evidence(4, 3.0, best_coverage(scored), rare_match)


def matches(*match: float) -> Matches:
    values = np.array(match, np.float32)
    return Matches(values, values, values, np.full(len(match), 100))


def names(scored: list[Scored]) -> list[str]:
    return [item.candidate.chunk.id for item in scored]


def test_the_match_orders() -> None:
    scored = fused(("a", 0.9, None, None), ("b", 0.8, None, None))
    found = by_sketches(scored, matches(0.2, 0.7))
    assert names(found.scored) == ["b", "a"]
    assert [item.rerank_score for item in found.scored] == pytest.approx([0.7, 0.2])
    assert found.rare_match == pytest.approx(0.7)


def test_what_the_whole_file_matches_raises_its_best_chunk_and_is_told() -> None:
    scored = fused(("a", 0.8, None, None), ("b", 0.8, None, None))
    of_chunks = matches(0.5, 0.45)
    found = by_sketches(scored, replace(of_chunks, file_match=np.array([0.5, 0.75], np.float32)))
    assert names(found.scored) == ["b", "a"]
    told = [item.changes[-1] for item in found.scored]
    assert told[0].template.format(*told[0].values) == (
        "token sketches: match 0.450 with 100 tokens, 0.750 with the rest of its file → order 0.555"
    )
    assert "file" not in told[1].template


def test_words_that_were_found_count_beside_it() -> None:
    much = fused(("a", 0.8, 9.0, 0.9), ("b", 0.8, 0.0, None))
    assert names(by_sketches(much, matches(0.3, 0.5)).scored) == ["a", "b"]
    little = fused(("a", 0.8, 9.0, 0.1), ("b", 0.8, 0.0, None))
    assert names(by_sketches(little, matches(0.3, 0.5)).scored) == ["b", "a"]


@given(st.lists(st.tuples(UNIT, st.floats(0, 50), UNIT, UNIT | st.just(float("nan"))), max_size=12), st.booleans())
def test_scores_fall_as_the_order_does(legs: list[tuple[float, float, float, float]], sketched: bool) -> None:
    scored = fused(*((f"{n:02}", cosine, bm25, found) for n, (cosine, bm25, found, _) in enumerate(legs)))
    rare_match = None
    if sketched:
        found = by_sketches(scored, matches(*(match for *_, match in legs)))
        scored, rare_match = found.scored, found.rare_match
    done = calibrated(scored, evident(scored, rare_match))
    assert sorted(names(done)) == sorted(names(scored))
    scores = [item.score for item in done]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    raised = [item for item in done if "holds the whole query" in item.changes[-1].template]
    assert len(raised) <= 1
    if not raised:
        assert names(done) == names(scored)


def test_the_best_text_hit_that_holds_the_whole_query_is_kept() -> None:
    legs = fused(("exact", 0.7, 9.0, 1.0), ("other", 0.7, 0.1, 1.0))
    scores = {item.candidate.chunk.id: item.score for item in calibrated(legs, Evidence(1, 7.0, 1.0, 0.0))}
    assert scores["exact"] == 0.35
    assert scores["other"] < 0.35
    part = calibrated(fused(("exact", 0.7, 9.0, 0.9)), Evidence(1, 7.0, 0.9))
    assert part[0].score < 0.35


@pytest.mark.parametrize("rare_match", [None, 1.0])
def test_without_a_subject_nothing_answers(rare_match: float | None) -> None:
    scored = fused(("a", 0.9, 9.0, 1.0))
    assert calibrated(scored, evident(scored, rare_match))[0].score >= 0.35
    assert calibrated(scored, evident(scored, rare_match), subject=False)[0].score < 0.05


def test_a_cross_encoder_refines_what_it_saw() -> None:
    legs = fused(("a", 0.9, None, None), ("b", 0.85, None, None), ("c", 0.8, None, None))
    scored = calibrated(legs, evident(legs))
    before = {item.candidate.chunk.id: item.score for item in scored}
    blended = by_cross_encoder(scored, {"a": 0.0, "b": 1.0}, 0.35)
    assert names(blended) == ["b", "a", "c"]
    assert [item.score for item in blended[:2]] == pytest.approx([0.6 * before["b"] + 0.4, 0.6 * before["a"]])
    assert blended[2].score == pytest.approx(min(before["c"], 0.6 * before["a"]))
    assert [item.rerank_score for item in blended] == [1.0, 0.0, None]


@pytest.mark.parametrize("seen", [{"exact": 0.0, "other": 0.0}, {"other": 0.0}], ids=["seen", "not seen"])
def test_a_cross_encoder_that_does_not_know_an_identifier_does_not_hide_it(seen: dict[str, float]) -> None:
    legs = fused(("exact", 0.7, 9.0, 1.0), ("other", 0.7, 0.1, 0.5))
    scored = calibrated(legs, Evidence(1, 7.0, 1.0, 0.0))
    assert names(scored) == ["exact", "other"]
    blended = by_cross_encoder(scored, seen, 0.35)
    assert [(item.candidate.chunk.id, item.score >= 0.35) for item in blended] == [("exact", True), ("other", False)]
    lower = by_cross_encoder(scored, {"exact": 0.0}, 0.1)[0].score
    assert lower == pytest.approx(0.6 * 0.35)


def test_nothing_to_rerank() -> None:
    assert by_sketches([], matches()).scored == []
    assert calibrated([], evident([])) == []
    assert by_cross_encoder([], {}, 0.35) == []
