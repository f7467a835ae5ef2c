"""Fitting constants on what was recorded: orders tried offline, weights chosen, scores calibrated."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from statistics import fmean

import numpy as np
import pytest

from memoryd.domain.calibration import SKETCH_DEPTH
from memoryd.domain.queries import DEFAULT_MIN_SCORE
from memoryd.domain.scoring import COMMITTED, Weights
from memoryd.errors import InvalidInputError
from memoryd.evaluation.calibrate import fit_way, score_of
from memoryd.evaluation.folds import by_set, folds
from memoryd.evaluation.logistic import regress
from memoryd.evaluation.observations import Kind
from memoryd.evaluation.tune import chosen, likely_match, tune
from memoryd.evaluation.ways import Way, example, ndcg_offline, rank_offline, reciprocal_ndcg
from tests.support.recorded import drawn, observed, recorded

TODAY = COMMITTED.weights
MANY = [*drawn(60, 1, name="one"), *drawn(60, 2, name="two"), *drawn(60, 3, name="three")]


def test_a_regression_finds_the_coefficients_again() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, 2))
    offset = rng.normal(size=20_000)
    odds = features @ [1.5, -0.7] + offset - 0.4
    labels = (rng.random(20_000) < 1 / (1 + np.exp(-odds))).astype(np.float64)
    found = regress(features, labels, np.ones(20_000), offset)
    assert found == pytest.approx([1.5, -0.7, -0.4], abs=0.08)


def test_a_regression_ends_where_the_labels_are_separable() -> None:
    found = regress(np.array([[-1.0], [1.0]]), np.array([0.0, 1.0]), np.full(2, 100.0), np.zeros(2))
    assert found[0] > 3
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("way", "documents", "order"),
    [
        # .7 × .2 + .3 × .5, .7 × .8 + .3 × .25, .7 × .6
        (Way.HYBRID, "bca", [0.635, 0.42, 0.29]),
        (Way.VECTOR, "bca", [0.8, 0.6, 0.2]),
        (Way.TEXT, "ab", [0.5, 0.25]),
        # match + 1.4 × .5² × text; c has no sketch: .07 + .47 × .6
        (Way.HYBRID_SKETCHES, "abc", [0.775, 0.3875, 0.352]),
        (Way.VECTOR_SKETCHES, "acb", [0.6, 0.352, 0.3]),
    ],
)
def test_orders_are_those_of_search(way: Way, documents: str, order: list[float]) -> None:
    rows = [(0.2, 6, 0.5, 0.6, 0.5), (0.8, 3, 0.3, 0.3, 0.4), (0.6, 0, 0.0, np.nan, np.nan)]
    ranked = rank_offline(recorded(observed("abc", rows)), way, TODAY)
    assert ranked is not None
    assert "".join(ranked.documents) == documents
    assert ranked.order == pytest.approx(order)
    assert ranked.evidence.coverage == (0.0 if way in {Way.VECTOR, Way.VECTOR_SKETCHES} else 0.5)
    assert ranked.evidence.rare_match == (pytest.approx(0.5) if "sketches" in way else None)


def test_sketches_beyond_the_depth_are_not_seen() -> None:
    rows = [(1 - place / 1000, 0.0, 0.0, 0.1, 0.1) for place in range(SKETCH_DEPTH)]
    deep = observed("a" * SKETCH_DEPTH + "b", [*rows, (0.0, 0.0, 0.0, 0.9, 0.9)])
    ranked = rank_offline(recorded(deep), Way.VECTOR_SKETCHES, TODAY)
    assert ranked is not None
    assert ranked.documents[-1] == "b"
    assert ranked.evidence.rare_match == pytest.approx(0.1)


def test_documents_that_are_ignored_or_taken_away() -> None:
    rows = [(0.9, 6, 0.9, 0.6, 0.5), (0.8, 3, 0.3, 0.3, 0.4), (0.6, 2, 0.2, 0.2, 0.2)]
    whole = recorded(observed("cab", rows))
    assert ndcg_offline(whole, Way.VECTOR, TODAY) == pytest.approx(0.6309, abs=1e-4)
    assert ndcg_offline(replace(whole, ignored=frozenset("c")), Way.VECTOR, TODAY) == 1.0
    rest = whole.withheld()
    assert (rest.kind, rest.both.documents) == (Kind.WITHHELD, ("c", "b"))
    found = example(recorded(whole.both.without(frozenset("ca"))), Way.TEXT, TODAY)
    assert found is None  # the right document is not there
    found = example(replace(rest, both=whole.both.without(frozenset("ca"))), Way.HYBRID, TODAY)
    assert found is not None
    assert found.order == pytest.approx(0.7 * 0.6 + 0.3 * 0.2)
    assert found.behind == 0.0
    second = example(whole, Way.VECTOR, TODAY)
    assert second is not None
    assert [second.order, second.behind] == pytest.approx([0.9, 0.1])
    assert [behind for behind, _ in second.shown] == pytest.approx([0.0, 0.1, 0.3])
    assert [right for _, right in second.shown] == [False, True, False]
    nothing = recorded(observed("", []), Kind.GIBBERISH)
    assert [rank_offline(nothing, way, TODAY) for way in Way] == [None] * len(Way)


@pytest.mark.parametrize("way", Way)
def test_a_calibration_tells_right_chunks_from_others(way: Way) -> None:
    fit = fit_way(MANY, way, TODAY, (TODAY, COMMITTED.text))
    assert fit is not None
    assert fit.after.kept >= 0.9
    assert fit.after.answered[Kind.GIBBERISH] <= 0.05
    if way is not Way.VECTOR:  # whose right chunks are like the others
        assert fit.after.auroc > 0.9
        assert fit.after.answered[Kind.FOREIGN] < 0.6
    assert fit.examples[Kind.FOREIGN] == 180


def test_a_distance_hides_wrong_chunks_without_spoiling_what_tells_right_from_foreign() -> None:
    fit = fit_way(MANY, Way.HYBRID_SKETCHES, TODAY, (TODAY, COMMITTED.hybrid_sketches))
    assert fit is not None
    answerable = [each for each in MANY if each.kind is Kind.ANSWERABLE]
    examples = [found for each in answerable if (found := example(each, Way.HYBRID_SKETCHES, TODAY))]
    shown = [
        (right, score_of(fit.calibration, replace(each, behind=behind)), score_of(near, replace(each, behind=behind)))
        for near in [replace(fit.calibration, distance=0.0)]
        for each in examples
        for behind, right in each.shown
    ]
    right, wrong = ([each[1:] for each in shown if each[0] is truth] for truth in (True, False))
    assert np.mean([score >= DEFAULT_MIN_SCORE for score, _ in right]) >= 0.95
    assert np.mean([score for score, _ in wrong]) < 0.5 * np.mean([score for _, score in wrong])


def test_what_finds_nothing_is_not_answered() -> None:
    fit = fit_way(MANY, Way.TEXT, TODAY, (TODAY, COMMITTED.text))
    assert fit is not None
    assert Kind.GIBBERISH not in fit.examples
    assert fit.after.answered[Kind.GIBBERISH] == 0.0


def test_too_little_or_nothing_of_a_way_is_no_fit() -> None:
    assert fit_way(list(drawn(10, 1)), Way.HYBRID, TODAY, (TODAY, COMMITTED.hybrid)) is None
    plain = list(drawn(30, 1, sketches=False))
    assert fit_way(plain, Way.HYBRID_SKETCHES, TODAY, (TODAY, COMMITTED.hybrid)) is None


def test_weights_follow_what_ranks_well_and_are_measured_on_other_queries() -> None:
    fused, sketches = tune(MANY, replace(TODAY, text=0.0))
    assert fused.way is Way.HYBRID
    assert fused.chosen.text >= 0.3
    assert fused.gains
    assert all(fused.held_out[name] > fused.before[name] for name in fused.before)
    assert len(fused.folds) == 5
    assert sketches.names == ("sketch_text", "length_penalty", "file")
    assert chosen([fused, sketches], replace(TODAY, text=0.0)).text == fused.chosen.text


def test_reciprocal_rank_fusion_stands_beside_the_fused_order() -> None:
    # Ranks by vectors: b, a, c; by BM25: c, a; so a is second and second, c third and first, b first alone.
    seen = observed("abc", [(0.8, 2, 0.5, 0, 0), (0.9, 0, 0, 0, 0), (0.1, 5, 0.5, 0, 0)])
    values = {right: reciprocal_ndcg(recorded(seen, right=right)) for right in "abc"}
    assert values == pytest.approx({"c": 1.0, "a": 1 / np.log2(3), "b": 0.5})
    fused, sketches = tune(MANY, TODAY)
    assert fused.reference is not None
    assert fused.above is not None
    assert (
        fused.above[0] <= fmean(fused.before[name] - fused.reference[name] for name in fused.before) <= fused.above[1]
    )
    assert (sketches.reference, sketches.above) == (None, None)


def test_without_a_gain_the_weights_stay() -> None:
    choices = tune([each for each in MANY if each.kind is Kind.ANSWERABLE], replace(TODAY, text=0.9))
    assert chosen([choice for choice in choices if not choice.gains], TODAY) == TODAY
    (fused,) = tune(list(drawn(30, 4, sketches=False)), TODAY)
    assert fused.way is Way.HYBRID
    with pytest.raises(InvalidInputError, match="5 queries have an answer"):
        tune(list(drawn(5, 4)), TODAY)


def test_what_stands_in_for_a_match_follows_the_vector() -> None:
    rows = [(value, 0.0, 0.0, 0.1 + 0.4 * value, 0.0) for value in np.linspace(0, 1, 30)]
    found = likely_match([recorded(observed("a" * 30, rows))], TODAY)
    assert (found.match_offset, found.match_slope) == pytest.approx((0.1, 0.4), abs=1e-6)
    flat = [recorded(observed("aa", [(0.5, 0, 0, 0.1, 0.1)] * 2))]
    assert likely_match(flat, TODAY) == TODAY


def test_folds_part_queries_and_sets() -> None:
    assert sorted(chain.from_iterable(folds(MANY))) == list(range(len(MANY)))
    assert [{MANY[place].name for place in fold} for fold in by_set(MANY)] == [{"one"}, {"three"}, {"two"}]
    two = [each for each in MANY if each.name != "two"]
    assert by_set(two) == folds(two)


def test_weights_of_today_are_the_committed_ones() -> None:
    assert Weights() == TODAY
