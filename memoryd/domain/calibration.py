"""From matches to the order by token sketches, and from an order to calibrated scores; constants are in `scoring`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.scoring import COMMITTED, Calibration, Weights
from memoryd.domain.sketches import Matches

# Candidates of the fused order that sketches are fetched for. 50 cost .001 to .015 (workspace) of nDCG@10.
SKETCH_DEPTH = 100

_TYPICAL_TOKENS = 100
# One word is easily matched by chance, six are not; that a query is longer still tells how its author writes, no more.
# Uncapped, a fit answers long questions whatever they are about, see `scoring`.
_TELLING_WORDS = 6


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a query is, and what it found as a whole.

    Attributes:
        words: how many distinct words it has.
        rarity: how improbable they are, in nats a byte (`text.nats_per_byte`).
        coverage: the share of it that the best text hit holds; 0 where the text leg did not run.
        rare_match: the best `Matches.rare_match` among the candidates; None where sketches were not compared.
    """

    words: int
    rarity: float
    coverage: float
    rare_match: float | None = None

    @property
    def log_words(self) -> float:
        """The natural logarithm of the number of words, as far as it tells anything."""
        return math.log(min(max(self.words, 1), _TELLING_WORDS))

    @property
    def unfound(self) -> float:
        """The rarity of what no text hit holds."""
        return self.rarity * (1.0 - self.coverage)


def calibrated_scores(calibration: Calibration, order: NDArray[np.float64], evidence: Evidence) -> NDArray[np.float64]:
    """Calibrate a query's ordering scores, shape (chunks,), at least one: 0 to 1, and greater where the order's is.

    Whether anything answers is told by the query as a whole, and by its first chunk; a chunk that stands far behind the
    first does not share in that: below the first, order weighs the calibration's distance at least.
    """
    query = (
        calibration.rare_match * (evidence.rare_match or 0.0)
        + calibration.words * evidence.log_words
        + calibration.unfound * evidence.unfound
    )
    # The tangent's form does not overflow.
    first = order.max()
    below = max(calibration.order, calibration.distance) * (order - first)
    logits = calibration.order * first + below + query + calibration.intercept
    scores: NDArray[np.float64] = 0.5 * (1 + np.tanh(0.5 * logits))
    return scores


def less_by_length(matches: Matches, weights: Weights = COMMITTED.weights) -> NDArray[np.float64]:
    """Take the penalty for their length off the matches; NaN where a chunk has no sketch."""
    penalty = weights.length_penalty * np.log(np.maximum(matches.tokens, 1) / _TYPICAL_TOKENS)
    return np.asarray(matches.match - penalty, np.float64)


def sketch_order(
    matches: Matches,
    vector: NDArray[np.float64],
    text: NDArray[np.float64] | None,
    coverage: float,
    weights: Weights = COMMITTED.weights,
) -> NDArray[np.float64]:
    """Give each candidate the score that orders it: its match, and its text score by what the text leg found, squared.

    The match of a file's best chunk is raised by what the whole file matches, see `scoring`.

    Args:
        matches: of the candidates; where one has no sketch its vector score stands in.
        vector: their vector scores, 0 to 1.
        text: their text scores, 0 to 1; None where the text leg did not run.
        coverage: share of the query that the best text hit holds: where words were hardly found they hardly count.
        weights: of the model.
    """
    likely = weights.match_offset + weights.match_slope * vector
    beside = weights.file * (matches.file_match - matches.match)
    match = np.where(np.isnan(matches.match), likely, less_by_length(matches, weights) + beside)
    return match if text is None else match + weights.sketch_text * coverage**2 * text


def best_rare_match(matches: Matches) -> float:
    """Give the best rare match among the candidates; 0 where none has a sketch."""
    found = matches.rare_match[~np.isnan(matches.rare_match)]
    return float(found.max()) if found.size else 0.0
