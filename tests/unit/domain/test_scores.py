from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.chunks import Chunk
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline
from memoryd.domain.scores import Candidate, Scored, decay, rank

SCOPE = Scope("acme", "rod")
UNIT = st.floats(0, 1)


def candidate(
    name: str, *, cosine: float | None = None, bm25: float | None = None, coverage: float | None = None
) -> Candidate:
    key = FileKey(SCOPE, f"{name}.md")
    chunk = Chunk(name, key, "text", "", Source.MEMORY, False, "", (), Revision(1, 1), "h", terms="", heading_terms="")
    listed = Listed(name, "i", 0, 1, 1)
    return Candidate(chunk, Outline(key, Revision(1, 1), "f", (listed,)), listed, cosine, bm25, coverage)


def ranked(*candidates: Candidate) -> dict[str, Scored]:
    return {scored.candidate.chunk.id: scored for scored in rank(candidates, unrelated=0.7, related=0.9)}


def test_a_cosine_is_mapped_from_the_models_range() -> None:
    scores = ranked(*(candidate(str(cosine), cosine=cosine) for cosine in (0.5, 0.7, 0.8, 0.9, 1.0)))
    assert {name: scored.score for name, scored in scores.items()} == pytest.approx(
        {"1.0": 1.0, "0.9": 1.0, "0.8": 0.5, "0.7": 0.0, "0.5": 0.0}
    )


def test_cosines_beyond_the_range_still_order() -> None:
    names = [
        scored.candidate.chunk.id
        for scored in rank([candidate("a", cosine=0.91), candidate("b", cosine=0.95)], unrelated=0.7, related=0.9)
    ]
    assert names == ["b", "a"]


def test_the_best_text_hit_scores_the_share_that_it_holds_and_the_others_in_proportion() -> None:
    scores = ranked(candidate("best", bm25=8.0, coverage=0.6), candidate("half", bm25=4.0, coverage=0.6))
    assert scores["best"].score == pytest.approx(0.6)
    assert scores["half"].score == pytest.approx(0.3)


def test_case_bm25_only() -> None:
    """Case `bm25-only`: a leg that found nothing does not cap the score of the other."""
    scores = ranked(candidate("exact", bm25=5.0, coverage=1.0))
    assert scores["exact"].score == pytest.approx(1.0)
    both = ranked(
        candidate("exact", cosine=0.76, bm25=5.0, coverage=1.0), candidate("other", cosine=0.9, bm25=0.0, coverage=0.0)
    )
    assert both["exact"].score == pytest.approx(0.7 * 0.3 + 0.3)
    assert both["exact"].score >= 0.35


def test_equal_scores_are_ordered_by_path() -> None:
    names = [
        scored.candidate.chunk.id
        for scored in rank([candidate(n, cosine=0.8) for n in "cab"], unrelated=0.7, related=0.9)
    ]
    assert names == ["a", "b", "c"]


@given(st.lists(st.tuples(UNIT, st.floats(0, 50), UNIT), max_size=12))
def test_scores_are_between_zero_and_one_and_the_order_is_theirs(legs: list[tuple[float, float, float]]) -> None:
    candidates = [
        candidate(f"{n:02}", cosine=cosine, bm25=bm25, coverage=coverage)
        for n, (cosine, bm25, coverage) in enumerate(legs)
    ]
    scores = [scored.score for scored in rank(candidates, unrelated=0.69, related=0.91)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def aged(name: str, date: str, *, evergreen: bool = False, coverage: float = 0.5) -> Candidate:
    one = candidate(name, cosine=0.85, bm25=1.0, coverage=coverage)
    return one._replace(outline=replace(one.outline, date=date, evergreen=evergreen))


def test_dated_notes_lose_half_their_score_each_half_life() -> None:
    candidates = [aged("new", "2026-06-30"), aged("month", "2026-05-31"), aged("topic", "2020-01-01", evergreen=True)]
    before = ranked(*candidates)
    after = {
        scored.candidate.chunk.id: scored.score
        for scored in decay(list(before.values()), 30.0, "2026-06-30", min_score=0.35)
    }
    assert after["new"] == before["new"].score
    assert after["topic"] == before["topic"].score
    assert after["month"] == pytest.approx(before["month"].score / 2)


def test_a_note_from_the_future_is_not_favoured() -> None:
    (scored,) = rank([aged("future", "2027-01-01")], unrelated=0.7, related=0.9)
    assert decay([scored], 30.0, "2026-06-30", 0.35)[0].score == scored.score


def test_old_age_does_not_hide_an_exact_hit() -> None:
    (scored,) = rank([aged("exact", "2016-06-30", coverage=1.0)], unrelated=0.7, related=0.9)
    assert decay([scored], 30.0, "2026-06-30", min_score=0.35)[0].score == pytest.approx(0.35)
    assert decay([scored], 30.0, "2026-06-30", min_score=0.0)[0].score < 0.01
