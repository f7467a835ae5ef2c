"""A model's constants over the wire."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoryd.domain.scoring import COMMITTED, Calibration, Scoring, Weights
from memoryd.v1 import embedder_pb2
from memoryd.wire.scoring import scoring_from, scoring_to

# No two values are the same.
OTHERS = Scoring(
    Weights(0.11, 0.12, 0.13, 0.14, 0.15, 0.16),
    *(Calibration(n + 0.1, n + 0.2, -n - 0.3, n + 0.4, n + 0.5, n + 0.6) for n in range(1, 6)),
)


@pytest.mark.parametrize("scoring", [COMMITTED, OTHERS])
def test_constants_come_back_as_they_were(scoring: Scoring) -> None:
    message = embedder_pb2.Scoring.FromString(scoring_to(scoring).SerializeToString())
    assert scoring_from(message) == scoring


def test_what_gives_no_falling_score_is_refused() -> None:
    with pytest.raises(ValueError, match="order above 0"):
        scoring_from(embedder_pb2.Scoring())
    for wrong in ({"order": 0.0}, {"unfound": 0.1}, {"intercept": float("nan")}, {"distance": -1.0}):
        with pytest.raises(ValueError, match="order above 0"):
            replace(COMMITTED.text, **wrong)
    for wrong in ({"text": 1.1}, {"file": -0.1}, {"sketch_text": -1.0}, {"match_slope": float("inf")}):
        with pytest.raises(ValueError, match="finite"):
            replace(COMMITTED.weights, **wrong)
