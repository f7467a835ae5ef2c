"""From what was found to the order by token sketches and to a calibrated score: constants in one place, with figures.

Sets, in order: an assistant's notes (28 files, 38 queries), six long articles (49 queries), an agent's workspace in
both languages (150 queries), conversation turns in both (200), English product documentation (232 files, 100 queries);
then the mean of these five; and, weighed in no choice, a tenth of a Chinese documentation (68 files, 150 queries).
Chunks of about 200 tokens, multilingual-e5-small in int8.

**Order.** nDCG@10 of the first 100 candidates of the fused order; "share" is how much of the query the best text hit
holds, and in a "weighed" match tokens that many candidates match weigh less (`sketches`):

    fused, as in `scores`                                    .688 .970 .624 .539 .831   .730   .875
    match                                                    .689 .960 .665 .590 .715   .724   .895
    match - penalty                                          .688 .962 .661 .582 .735   .726   .895
    half the match + half the fused score                    .703 .970 .648 .576 .795   .738   .897
    match - penalty + .8 text score                          .703 .970 .639 .540 .834   .737   .883
    match - penalty + .8 text score × share                  .693 .970 .657 .583 .827   .746   .897
    match - penalty + 1.4 text score × share²                .692 .970 .664 .584 .835   .749   .892
    weighed match - penalty                                  .692 .962 .670 .585 .750   .732   .894
    weighed match - penalty + .8 text score × share          .691 .970 .652 .588 .823   .745   .892
    weighed match - penalty + 1.4 text score × share²        .695 .970 .665 .591 .833   .751   .899

The last one is used. Over the queries of the first five sets it gains .032 on the fused score (95 % of bootstraps: .019
to .045) and .006 on the sixth row, which was used before (.002 to .011); no set loses. The constants are those of 52
tried (weight of the text, power of the share, from which match on a token counts as common, and how much) that are best
where no set may lose .003. Chosen so on four fifths of the queries they gain .005 on the other fifth (.001 to .009);
chosen without a set at all they may lose there, up to .014 on Chinese documentation, so that a set of each sort is
needed. The vector score adds nothing to this sum, nor do matches within a window of 12 to 48 tokens instead of a chunk.

**Files.** What a question asks for may stand in several places of a file. So the match of a file's best chunk is raised
by a share of how much better all its chunks among the candidates match together, each token with the nearest of theirs.
nDCG@10 of hybrid and of the vector leg alone: the sets in the same order, the first 110 files of the Chinese
documentation (225 queries), and the mean of all six; and over the six the mean share of queries with a right document
among the first 6 results of hybrid:

    share             hybrid                          mean  first 6    vector                          mean
    0                 .696 .967 .668 .592 .828 .793  .757   .891      .687 .955 .675 .598 .756 .771  .740
    .2                .699 .977 .670 .592 .828 .795  .760   .893      .688 .955 .680 .598 .759 .782  .744
    .35               .705 .977 .668 .592 .828 .800  .762   .896      .692 .955 .676 .598 .758 .790  .745
    .5                .698 .977 .665 .592 .827 .796  .759   .896      .686 .962 .673 .598 .760 .791  .745
    .35, all chunks   .704 .977 .672 .592 .833 .798  .763   .888      .692 .955 .673 .598 .758 .788  .744

Of the vector leg .35 gains .006 a query (95 % of bootstraps: .001 to .012), of hybrid .003 (.000 to .007); no set
loses. Given to all chunks of a file, they fill the first results and leave the files that are right out of them.
Conversations, one chunk a file, stay as they are. The calibrations below were fitted before; with it they keep .981 of
the right chunks and answer .42 of the foreign queries, AUROC .968.

**Score.** A logistic regression for each way to search tells answerable queries, those whose right document is among
the first 6, from others: those of the other sets, gibberish, and, at .3 of their weight, the unanswerable ones. Its
intercept is set so that DEFAULT_MIN_SCORE keeps at least 98 % of the right chunks, both as a mean over sets and over
all queries. AUROC of these chunks' scores, and shares answered, all of it for a set that the fit has not seen:

                            AUROC   kept   foreign   gibberish   foreign where each set has its own cut at 97 %
    hybrid with sketches    .969    .973   .40       .00         .03 .04 .57 .33 .08
    vector with sketches    .956    .977   .40       .00         .09 .12 .96 .33 .07
    hybrid                  .961    .966   .53       .00         .07 .04 .65 .59 .07
    vector                  .861    .974   .79       .01         .73 .40 1.0 .76 .02
    text                    .949    .958   .53       .00         .27 .39 .43 .77 .22

The calibrations of hybrid and vector alone are kept from an earlier fit, the first one's intercept set anew: over all
sets they do as well or better. Of the query as a whole count its best rare match, the number of its words up to six,
and how improbable the part is that no text hit holds, in nats a byte: 1.9 to 4.1 for questions in any language, 6.2 to
7.8 for gibberish, and for identifiers, which text hits hold. Without the last two, gibberish was answered by .03 with
sketches and by .65 to .90 without. One word is easily matched by chance; without the bound of six, long questions are
answered whatever they are about: of the foreign ones .43 instead of .38, where .97 are kept and the distance is 4.9.

How far it can go: foreign queries that are answered, as a mean over sets, where one cut keeps so many right chunks of
all sets, each set scored by a fit without it:

    kept                                               .99   .98   .97   .95   .90
    as it is                                           .61   .49   .42   .26   .16
    with the match's gap to the candidates' median     .58   .46   .43   .25   .16
    with the share of tokens matched by .65            .59   .50   .39   .25   .16
    with the vector score and its gap                  .61   .56   .52   .31   .15
    with forty such signals                            .71   .62   .51   .42   .24
    the same, boosted trees                            .77   .66   .58   .34   .16

The forty are gaps, spreads, backgrounds, agreement of the legs, matches of the rarest tokens, scripts; none alone gains
beyond its noise. What remains are, on the one side, questions in other words than their answer's ("who keeps
their hands off the keyboard during an outage?"), and on the other those about what a workspace is about, but whose
answer it does not hold: of the notes' questions ("why did we choose SQLite?") .89 are answered from the agent's
workspace, and .26 from the conversations; of the Chinese documentation's .41 and .00. To tell these takes a reader.

What a whole query found counts for all its chunks alike, so that the score falls as the order does; how far a chunk is
behind the first has a weight of its own, the distance. The likeliest one (of the first 6 documents of answerable
queries, right from wrong) hides most wrong documents, but lowers the right one where it is not the first; the fit takes
as many eighths of it as cost .004 of AUROC. With sketches, of sets that the fit has not seen:

    eighths   kept   foreign   of the first 6 documents, shown of the right ones, and of the wrong ones
    0         .967   .40       .97   .97
    4         .972   .42       .97   .88
    5         .970   .43       .96   .76
    6         .949   .44       .94   .69
    8         .950   .46       .93   .58
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
        file: share of the whole file's match in that of its best chunk, 0 to 1.
        match_offset: what a match less its penalty is likely to be where a chunk has no sketch, for a vector score of
            0: least squares over all candidates of the answerable queries (correlation .8).
        match_slope: and how much more per vector score.
    """

    text: float = 0.3
    sketch_text: float = 1.4
    length_penalty: float = 0.02
    file: float = 0.35
    match_offset: float = 0.07
    match_slope: float = 0.47

    def __post_init__(self) -> None:
        """Raise ValueError where a weight is none."""
        shares = all(0 <= share <= 1 for share in (self.text, self.file))
        if not all(map(math.isfinite, astuple(self))) or not shares or self.sketch_text < 0:
            raise ValueError(f"weights must be finite, text and file 0 to 1, sketch_text at least 0; got {self}")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of a logistic regression.

    Attributes:
        order: of the score that orders the chunks, above 0.
        intercept: so that DEFAULT_MIN_SCORE separates.
        unfound: of the rarity of what no text hit holds, below 0.
        words: of the natural logarithm of the number of words, of which six at most count.
        rare_match: of the best rare match.
        distance: of how far a chunk is behind the first one in that score, where that is more than `order`; at least 0.
    """

    order: float
    intercept: float
    unfound: float
    words: float = 0.0
    rare_match: float = 0.0
    distance: float = 6.0

    def __post_init__(self) -> None:
        """Raise ValueError where a score would not fall as the order does."""
        if not all(map(math.isfinite, astuple(self))) or self.order <= 0 or self.unfound > 0 or self.distance < 0:
            raise ValueError(
                f"weights must be finite, order above 0, unfound at most 0, distance at least 0; got {self}"
            )


HYBRID_SKETCHES = Calibration(order=1.46, rare_match=10.27, words=1.2, unfound=-0.971, intercept=-4.748, distance=6.1)
VECTOR_SKETCHES = Calibration(order=0.99, rare_match=17.94, unfound=-0.865, intercept=-5.064, distance=4.3)
HYBRID = Calibration(order=8.18, words=1.01, unfound=-1.22, intercept=-2.85)
VECTOR = Calibration(order=10.0, unfound=-1.03, intercept=-2.554)
TEXT = Calibration(order=8.31, words=1.28, unfound=-0.2, intercept=-3.323, distance=8.5)


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
