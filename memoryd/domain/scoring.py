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

What a whole query found counts for all its chunks alike, so that the score falls as the order does; how far a chunk is
behind the first counts more than the fit says (`calibration.DISTANCE`), which saw one chunk of each query.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

# The model that all constants here were chosen for.
FITTED_FOR = "multilingual-e5-small"


@dataclass(frozen=True, slots=True)
class Weights:
    """What orders the chunks.

    Attributes:
        text: share of the text score in the fused order, 0 to 1; the rest is the vector score's.
        sketch_text: weight of the text score beside a sketch's match, which weighs 1; at least 0.
        length_penalty: taken off a match per natural logarithm of its sketch's tokens over 100: a longer chunk has more
            tokens to match by chance.
        match_offset: what a match less its penalty is likely to be where a chunk has no sketch, for a vector score of
            0: least squares over all candidates of the answerable queries (correlation .77).
        match_slope: and how much more per vector score.
    """

    text: float = 0.3
    sketch_text: float = 0.8
    length_penalty: float = 0.02
    match_offset: float = 0.06
    match_slope: float = 0.51

    def __post_init__(self) -> None:
        """Raise ValueError where a weight is none."""
        if not all(map(math.isfinite, astuple(self))) or not 0 <= self.text <= 1 or self.sketch_text < 0:
            raise ValueError(f"weights must be finite, text 0 to 1, sketch_text at least 0; got {self}")


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

    def __post_init__(self) -> None:
        """Raise ValueError where a score would not fall as the order does."""
        if not all(map(math.isfinite, astuple(self))) or self.order <= 0 or self.unfound > 0:
            raise ValueError(f"weights must be finite, order above 0, unfound at most 0; got {self}")


HYBRID_SKETCHES = Calibration(order=2.0, rare_match=8.41, words=1.02, unfound=-0.92, intercept=-4.45)
VECTOR_SKETCHES = Calibration(order=2.0, rare_match=14.96, unfound=-0.71, intercept=-4.836)
HYBRID = Calibration(order=8.18, words=1.01, unfound=-1.22, intercept=-3.067)
VECTOR = Calibration(order=10.0, unfound=-1.03, intercept=-2.554)
TEXT = Calibration(order=3.02, words=1.29, unfound=-1.49, intercept=0.107)


@dataclass(frozen=True, slots=True)
class Scoring:
    """All constants that turn what was found into an order and a score, for one model; by default the committed ones.

    Attributes:
        weights: of the order.
        hybrid_sketches: calibration of both legs with token sketches.
        vector_sketches: of the vector leg with token sketches.
        hybrid: of both legs without.
        vector: of the vector leg without.
        text: of the text leg.
    """

    weights: Weights = Weights()
    hybrid_sketches: Calibration = HYBRID_SKETCHES
    vector_sketches: Calibration = VECTOR_SKETCHES
    hybrid: Calibration = HYBRID
    vector: Calibration = VECTOR
    text: Calibration = TEXT

    def calibration(self, *, vector: bool, text: bool, sketches: bool) -> Calibration:
        """Choose by the legs that ran, at least one of them, and whether sketches were compared."""
        if not vector:
            return self.text
        if sketches:
            return self.hybrid_sketches if text else self.vector_sketches
        return self.hybrid if text else self.vector


COMMITTED = Scoring()
