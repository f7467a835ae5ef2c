"""From matches to an order and a calibrated score."""

from __future__ import annotations

import numpy as np
import pytest

from memoryd.domain.calibration import (
    Evidence,
    best_rare_match,
    calibrated_scores,
    sketch_order,
)
from memoryd.domain.scoring import (
    COMMITTED,
    HYBRID,
    HYBRID_SKETCHES,
    TEXT,
    VECTOR,
    VECTOR_SKETCHES,
    Calibration,
)
from memoryd.domain.sketches import Matches

ALL = (HYBRID_SKETCHES, VECTOR_SKETCHES, HYBRID, VECTOR, TEXT)


def matches(*match: float, of_file: float | None = None, tokens: int = 100) -> Matches:
    values = np.array(match, np.float32)
    of_files = values if of_file is None else np.full(len(match), of_file, np.float32)
    return Matches(values, of_files, values * np.float32(0.5), np.full(len(match), tokens))


@pytest.mark.parametrize(
    ("legs", "chosen"),
    [
        ((True, True, True), HYBRID_SKETCHES),
        ((True, False, True), VECTOR_SKETCHES),
        ((True, True, False), HYBRID),
        ((True, False, False), VECTOR),
        ((False, True, False), TEXT),
        ((False, True, True), TEXT),
    ],
)
def test_what_ran_decides(legs: tuple[bool, bool, bool], chosen: Calibration) -> None:
    vector, text, sketches = legs
    assert COMMITTED.calibration(vector=vector, text=text, sketches=sketches) is chosen


@pytest.mark.parametrize("chosen", ALL)
def test_a_score_is_between_0_and_1_and_falls_with_the_order(chosen: Calibration) -> None:
    scores = calibrated_scores(chosen, np.linspace(2, -1, 50), Evidence(5, 3.0, 0.5, 0.4))
    assert ((scores > 0) & (scores < 1)).all()
    assert (np.diff(scores) < 0).all()
    assert np.isfinite(calibrated_scores(chosen, np.array([-1e6, 1e6]), Evidence(0, 10.0, 0.0))).all()


def test_what_the_query_found_counts_for_all_chunks() -> None:
    order = np.array([1.0, 0.5])
    little = calibrated_scores(HYBRID_SKETCHES, order, Evidence(5, 3.0, 0.1, 0.1))
    much = calibrated_scores(HYBRID_SKETCHES, order, Evidence(5, 3.0, 1.0, 0.7))
    assert (little < 0.35).all()
    assert (much > 0.35).all()


@pytest.mark.parametrize("chosen", ALL)
def test_gibberish_is_found_out_by_its_improbable_words_unless_they_are_found(chosen: Calibration) -> None:
    def score(rarity: float, coverage: float) -> float:
        order = min(0.5, coverage) if chosen is TEXT else 0.5  # of text alone it is at most the share that was found
        return float(calibrated_scores(chosen, np.array([order]), Evidence(3, rarity, coverage, 0.45))[0])

    words, gibberish, identifier = (
        score(rarity, coverage) for rarity, coverage in ((3.0, 0.4), (7.0, 0.0), (7.0, 1.0))
    )
    assert gibberish < 0.35 <= words
    assert identifier >= 0.35


def test_words_count_up_to_six() -> None:
    one, six, twenty = (
        calibrated_scores(HYBRID_SKETCHES, np.array([0.5]), Evidence(words, 3.0, 0.3, 0.4))[0] for words in (1, 6, 20)
    )
    assert one < six == twenty


def test_a_longer_chunk_is_expected_to_match_by_chance() -> None:
    short, long = (sketch_order(matches(0.5, tokens=n), np.zeros(1), None, 0.0)[0] for n in (100, 200))
    assert short == pytest.approx(0.5)
    assert long == pytest.approx(0.5 - 0.02 * np.log(2))


def test_what_the_file_matches_counts_for_its_chunks() -> None:
    in_file = sketch_order(matches(0.5, np.nan, of_file=0.7), np.zeros(2), None, 0.0)
    weights = COMMITTED.weights
    assert in_file == pytest.approx([0.5 + weights.file * 0.2, weights.match_offset])


def test_text_counts_by_how_much_of_the_query_was_found() -> None:
    text = np.array([1.0, 0.0])
    order = sketch_order(matches(0.5, 0.5), np.zeros(2), text, 0.25)
    assert order == pytest.approx([0.5 + COMMITTED.weights.sketch_text * 0.25**2, 0.5])


def test_without_a_sketch_the_vector_score_stands_in() -> None:
    order = sketch_order(matches(np.nan, np.nan, 0.4), np.array([0.9, 0.1, 0.0]), None, 0.0)
    assert order[0] > order[2] > order[1]


def test_the_best_rare_match() -> None:
    assert best_rare_match(matches(0.2, np.nan, 0.8)) == pytest.approx(0.4)
    assert best_rare_match(matches(np.nan)) == 0.0
    assert best_rare_match(matches()) == 0.0


def test_a_chunk_far_behind_the_first_does_not_share_its_score() -> None:
    first, near, far = calibrated_scores(HYBRID_SKETCHES, np.array([1.7, 1.6, 0.4]), Evidence(2, 3.0, 1.0, 0.7))
    assert first > 0.95
    assert first > near > 0.9
    assert far < 0.5
