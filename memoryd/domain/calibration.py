"""From what was found to the order by token sketches and to a calibrated score: constants in one place, with figures.

Sets, in order: an assistant's notes (28 files, 38 queries), six long articles (49 queries), an agent's workspace in
both languages (150 queries), conversation turns in both (200), English product documentation (232 files, 100 queries);
then the mean of these five; and, weighed in no choice, a tenth of a Chinese documentation (68 files, 150 queries).
Chunks of about 200 tokens, multilingual-e5-small in int8.

**Order.** nDCG@10 of the first 100 candidates of the fused order:

    fused, as in `scores`                                    .687 .977 .624 .542 .833   .733   .879
    match                                                    .663 .970 .677 .591 .718   .724   .879
    match - penalty                                          .664 .977 .669 .585 .743   .728   .885
    half the match + half the fused score                    .695 .977 .648 .578 .793   .738   .889
    match - penalty + .8 text score                          .696 .977 .638 .554 .836   .740   .873
    match - penalty + .8 text score × its best hit's share   .688 .977 .658 .590 .829   .748   .887
    the same, of the first 50 candidates                     .688 .977 .644 .587 .829   .745   .889
    the same of 100, the match by squared rarity             .690 .977 .665 .583 .827   .749   .881

The last but two is used. Over the queries of all five sets it gains .026 on the fused score (95 % of bootstraps: .015
to .039); where it loses, on documentation, that is .004 (a loss of .023 to a gain of .015). Weight and penalty chosen
on four fifths of the queries give .687 .977 .660 .583 .819 on the other fifth, mean .745; chosen without a set at all
they give it .686 .977 .651 .579 .797. The vector score adds nothing to this sum.

**Score.** A logistic regression for each way to search tells the right document's chunk of an answerable query, where
that is among the first 6 documents, from the best chunk of other queries: those of the other sets, gibberish, and, at
.3 of their weight, the unanswerable ones. Its intercept is set so that DEFAULT_MIN_SCORE keeps at least 98 % of the
right chunks, both as a mean over sets and over all queries. AUROC of the best chunk's score, and shares answered, all
of it for a set that the fit has not seen:

                            AUROC   kept   foreign   gibberish   foreign where each set has its own cut at 97 %
    hybrid with sketches    .975    .977   .44       .00         .19 .05 .70 .22 .04
    vector with sketches    .962    .971   .42       .00         .06 .09 .74 .28 .05
    hybrid                  .970    .962   .49       .00         .45 .04 .52 .39 .04
    vector                  .907    .976   .71       .02         .29 .26 .97 .64 .03
    text                    .920    .959   .68       .00         .62 .26 .58 .64 .09

Of the query as a whole count its best rare match, the number of its words (one word is easily matched by chance), and
how improbable the part is that no text hit holds, in nats a byte: 1.9 to 4.1 for questions in any language, 6.2 to 7.8
for gibberish, and for identifiers, which text hits hold. Without the last two, gibberish was answered by .03 with
sketches and by .65 to .90 without. A question about what a workspace is about, but whose answer it does not hold, is
not told apart: that takes a reader. With sketches the order's weight is fixed at 2: a free one is negative, since the
right document need not be the first.

What a whole query found counts for all its chunks alike, so that the score falls as the order does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.sketches import Matches

# Candidates of the fused order that sketches are fetched for. 50 cost .001 to .015 (workspace) of nDCG@10.
SKETCH_DEPTH = 100

# Beside the match, which weighs 1.
SKETCH_TEXT_WEIGHT = 0.8
# A longer chunk has more tokens to match by chance: taken off per natural logarithm of its sketch's tokens over 100.
LENGTH_PENALTY = 0.02
_TYPICAL_TOKENS = 100
# What a match is likely to be (less the penalty), by the vector score, where a chunk has no sketch: least squares over
# all candidates of the answerable queries (correlation .77).
_MATCH_OFFSET, _MATCH_SLOPE = 0.06, 0.51


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


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of a logistic regression.

    Attributes:
        order: of the score that orders the chunks, above 0.
        intercept: so that DEFAULT_MIN_SCORE separates.
        unfound: of the rarity of what no text hit holds, below 0.
        words: of the natural logarithm of the number of words.
        rare_match: of the best rare match.
    """

    order: float
    intercept: float
    unfound: float
    words: float = 0.0
    rare_match: float = 0.0

    def scores(self, order: NDArray[np.float64], evidence: Evidence) -> NDArray[np.float64]:
        """Calibrate a query's ordering scores, any shape: 0 to 1, and greater where the ordering score is greater."""
        query = (
            self.rare_match * (evidence.rare_match or 0.0)
            + self.words * math.log(max(evidence.words, 1))
            + self.unfound * evidence.rarity * (1.0 - evidence.coverage)
        )
        # The tangent's form does not overflow.
        scores: NDArray[np.float64] = 0.5 * (1 + np.tanh(0.5 * (self.order * order + query + self.intercept)))
        return scores


HYBRID_SKETCHES = Calibration(order=2.0, rare_match=8.41, words=1.02, unfound=-0.92, intercept=-4.45)
VECTOR_SKETCHES = Calibration(order=2.0, rare_match=14.96, unfound=-0.71, intercept=-4.836)
HYBRID = Calibration(order=8.18, words=1.01, unfound=-1.22, intercept=-3.067)
VECTOR = Calibration(order=10.0, unfound=-1.03, intercept=-2.554)
TEXT = Calibration(order=3.02, words=1.29, unfound=-1.49, intercept=0.107)


def calibration(*, vector: bool, text: bool, sketches: bool) -> Calibration:
    """Choose by the legs that ran, at least one of them, and whether sketches were compared."""
    if not vector:
        return TEXT
    if sketches:
        return HYBRID_SKETCHES if text else VECTOR_SKETCHES
    return HYBRID if text else VECTOR


def sketch_order(
    matches: Matches, vector: NDArray[np.float64], text: NDArray[np.float64] | None, coverage: float
) -> NDArray[np.float64]:
    """Give each candidate the score that orders it: its match, and its text score by how much the text leg found.

    Args:
        matches: of the candidates; where one has no sketch its vector score stands in.
        vector: their vector scores, 0 to 1.
        text: their text scores, 0 to 1; None where the text leg did not run.
        coverage: share of the query that the best text hit holds: where words were hardly found they hardly count.
    """
    penalty = LENGTH_PENALTY * np.log(np.maximum(matches.tokens, 1) / _TYPICAL_TOKENS)
    match = np.where(np.isnan(matches.match), _MATCH_OFFSET + _MATCH_SLOPE * vector, matches.match - penalty)
    return match if text is None else match + SKETCH_TEXT_WEIGHT * coverage * text


def best_rare_match(matches: Matches) -> float:
    """Give the best rare match among the candidates; 0 where none has a sketch."""
    found = matches.rare_match[~np.isnan(matches.rare_match)]
    return float(found.max()) if found.size else 0.0
