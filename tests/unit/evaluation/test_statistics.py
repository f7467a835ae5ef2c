from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.evaluation.bootstrap import interval
from memoryd.evaluation.metrics import auroc, percentile

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12)


@given(positives=SCORES, negatives=SCORES)
def test_auroc_counts_the_pairs_in_order(positives: list[float], negatives: list[float]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p in positives for n in negatives]
    assert auroc(positives, negatives) == pytest.approx(sum(pairs) / len(pairs))


def test_an_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    # The standard error of a fair coin's mean of 400 is 1/2 over the root of 400.
    low, high = interval([0.0, 1.0] * 200)
    assert (low, high) == pytest.approx((0.5 - 1.96 * 0.025, 0.5 + 1.96 * 0.025), abs=0.004)
    assert interval([0.25] * 7) == (0.25, 0.25)
    assert interval([0.3, 0.9, 0.1]) == interval([0.3, 0.9, 0.1])


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([3.0, 1.0, 2.0], share) for share in (0, 0.5, 0.95, 1)] == [1.0, 2.0, 3.0, 3.0]
