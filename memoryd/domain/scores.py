"""From what the legs found to one score, which is also the order.

The constants were chosen by nDCG@10 over five sets (notes, short articles, an agent's workspace, conversation turns,
product documentation; the mean of the sets' means in the last column), chunks of at most 400 tokens:

    text leg alone                                          .624 .960 .560 .431 .825   .680
    vector leg alone                                        .554 .939 .475 .528 .730   .645
    reciprocal rank fusion, k = 60                          .625 .962 .549 .502 .827   .693
    z-scores, half and half                                 .660 .970 .599 .502 .847   .716
    .7 vector + .3 share of the query found                 .646 .985 .603 .546 .769   .710
    .7 vector + .3 BM25 over the best hit's                 .685 .967 .596 .496 .842   .717
    .7 vector + .3 BM25 over the best hit's × its share     .688 .977 .603 .545 .832   .729

With chunks of 200 tokens, as they are now, and the first 110 files of the Chinese documentation as a sixth set:

    text leg alone                                          .714 .965 .587 .436 .829 .737   .711
    vector leg alone                                        .628 .934 .539 .528 .720 .730   .680
    reciprocal rank fusion, k = 60                          .692 .960 .572 .501 .815 .789   .721
    .7 vector + .3 BM25 over the best hit's × its share     .693 .970 .616 .543 .832 .803   .743

Over all 762 queries the last one gains .027 on reciprocal rank fusion (95 % of bootstraps: .016 to .038), .053 on the
text leg (.038 to .068) and .061 on the vector leg (.046 to .076).

It is used. It needs nothing but what a text store returns, it is the same for every `max_results`, and a leg
that found little of the query says little: on conversations, where few words of a question are found, the vectors
decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from memoryd.domain.chunks import Chunk
from memoryd.domain.outlines import Listed, Outline
from memoryd.domain.scoring import COMMITTED, Weights


# A search makes some hundred of each of these, several times: a named tuple takes 40 % of a frozen dataclass's time.
class Candidate(NamedTuple):
    """A visible chunk that a leg found, and what each leg says of it.

    Attributes:
        chunk: the chunk as stored.
        outline: the outline that lists it.
        listed: its place in the file.
        cosine: to the query; None where the vector leg did not run or does not know the chunk.
        bm25: the text leg's score; 0 where that leg ran and did not find it, None where it did not run.
        coverage: share of the query's weight that the chunk contains, 0 to 1; None where it was not looked up. It must
            be there for the best text hit.
    """

    chunk: Chunk
    outline: Outline
    listed: Listed
    cosine: float | None = None
    bm25: float | None = None
    coverage: float | None = None


class Change(NamedTuple):
    """A step of a score, put into words only where somebody reads it: `template.format(*values)`."""

    template: str
    values: tuple[object, ...] = ()


class Scored(NamedTuple):
    """A candidate with its scores, 0 to 1; None for a part that did not run.

    Attributes:
        candidate: the chunk.
        order: what the score is made from, on a scale of the query's own; not cut at 1, so that questions close
            to many chunks still tell them apart.
        score: how well the chunk answers: absolute once it is calibrated, and falling as the order does.
        vector_score: of the vector leg.
        text_score: of the text leg.
        rerank_score: of token sketches or a cross-encoder.
        weights: by which the legs were fused.
        changes: what happened to the score after the legs were fused, for a person.
    """

    candidate: Candidate
    order: float
    score: float
    vector_score: float | None
    text_score: float | None
    rerank_score: float | None = None
    weights: Weights = COMMITTED.weights
    changes: tuple[Change, ...] = ()

    def with_score(self, score: float, change: Change, rerank_score: float | None = None) -> Scored:
        """Change the score, and the order in proportion."""
        order = self.order * score / self.score if self.score > 0 else score
        reranked = self.rerank_score if rerank_score is None else rerank_score
        return self._replace(order=order, score=score, rerank_score=reranked, changes=(*self.changes, change))

    def floor(self, min_score: float) -> float:
        """Give what no step may lower the score below: a chunk that contains the whole query keeps `min_score`."""
        return min(self.score, min_score) if (self.candidate.coverage or 0.0) >= 1.0 else 0.0

    def explanation(self) -> tuple[str, ...]:
        """Tell a person how the score came about, one step a line."""
        candidate, steps = self.candidate, []
        if self.vector_score is not None:
            steps.append(f"vector: cosine {candidate.cosine:.4f} → {self.vector_score:.3f}")
        if self.text_score is not None:
            found = "" if candidate.coverage is None else f", {candidate.coverage:.0%} of the query's weight found"
            steps.append(f"text: BM25 {candidate.bm25:.2f}{found} → {self.text_score:.3f}")
        legs = ((1 - self.weights.text, self.vector_score), (self.weights.text, self.text_score))
        parts = " + ".join(f"{weight:g} × {part:.3f}" for weight, part in legs if part is not None)
        steps.append(f"fused: {parts}, over the legs that ran")
        said = (change.template.format(*change.values) for change in self.changes)
        return (*steps, *said, f"score: {self.score:.3f}")


def rank(
    candidates: Sequence[Candidate], *, unrelated: float, related: float, weights: Weights = COMMITTED.weights
) -> list[Scored]:
    """Score candidates and put the best first; equal ones by path and line, so that the order is stable.

    `unrelated` and `related` are the model's typical cosines (`ModelInfo`), see `vector_score`; beyond `related` a
    cosine still counts for the order. The best text hit scores the share of the query that it holds, and the others in
    proportion to their BM25. `weights` are the model's.
    """
    best = max(candidates, key=lambda candidate: candidate.bm25 or 0.0, default=None)
    top_bm25 = (best.bm25 or 0.0) if best else 0.0
    scale = (best.coverage or 0.0) / top_bm25 if best and top_bm25 > 0 else 0.0
    scored = []
    for candidate in candidates:
        vector = None if candidate.cosine is None else vector_score(candidate.cosine, unrelated, related)
        text = None if candidate.bm25 is None else min(candidate.bm25 * scale, 1.0)
        order = _fuse(vector, text, weights)
        shown = None if vector is None else min(vector, 1.0)
        scored.append(Scored(candidate, order, min(order, 1.0), shown, text, weights=weights))
    return by_score(scored)


def vector_score(cosine: float, unrelated: float, related: float) -> float:
    """Map a cosine linearly from a model's typical range to 0–1; beyond `related` it goes on."""
    return max((cosine - unrelated) / (related - unrelated), 0.0)


def by_score(scored: Iterable[Scored]) -> list[Scored]:
    """Put the best first; equal ones by path and line, so that the order is stable."""
    return sorted(scored, key=_position)


def best_text_hit(scored: Iterable[Scored]) -> Scored | None:
    """Give the candidate that the text leg likes best; None where it found none."""
    best = max(scored, key=lambda item: item.candidate.bm25 or 0.0, default=None)
    return best if best and best.candidate.bm25 else None


def decay(scored: Sequence[Scored], half_life_days: float, today: str, min_score: float) -> list[Scored]:
    """Halve the score of dated notes every `half_life_days` of age; evergreen files keep theirs.

    A chunk that contains the whole query keeps at least `min_score` if it had it: old age must not hide an exact hit.
    """
    now = date.fromisoformat(today)
    decayed = []
    for item in scored:
        outline = item.candidate.outline
        day = item.candidate.chunk.date or outline.date
        if outline.evergreen or not day:
            decayed.append(item)
            continue
        age = max((now - date.fromisoformat(day)).days, 0)
        score = max(item.score * 0.5 ** (age / half_life_days), item.floor(min_score))
        change = Change("decay: {} days, half-life {:g} → {:.3f}", (age, half_life_days, score))
        decayed.append(item.with_score(score, change))
    return by_score(decayed)


def _fuse(vector: float | None, text: float | None, weights: Weights) -> float:
    """Weigh the legs, renormalised over those that ran: a missing leg never caps the score."""
    if vector is None:
        return text or 0.0
    if text is None:
        return vector
    return (1 - weights.text) * vector + weights.text * text


def _position(scored: Scored) -> tuple[float, float, str, int, str]:
    candidate = scored.candidate
    return -scored.score, -scored.order, candidate.chunk.key.path, candidate.listed.start_line, candidate.chunk.id
