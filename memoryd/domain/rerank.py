"""Reranking: token sketches put the fused candidates into a better order, a cross-encoder refines its beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memoryd.domain.calibration import Evidence, best_rare_match, calibrated_scores, sketch_order
from memoryd.domain.queries import DEFAULT_MIN_SCORE
from memoryd.domain.scores import Change, Scored, best_text_hit, by_score
from memoryd.domain.scoring import COMMITTED, Scoring, Weights
from memoryd.domain.sketches import Matches

# Share of a cross-encoder's score in the blend. Replacing the score with it loses in published trials (an exact hit
# that a small model does not see); none can be had to choose this by evaluation here.
CROSS_ENCODER_WEIGHT = 0.4
# Score of a query without a subject, as a share.
_NO_SUBJECT = 0.05
_CALIBRATED = "calibrated: order {:.3f}, {} → {:.3f}"
_RAISED = f"{_CALIBRATED}, which holds the whole query"
_MATCHED = "token sketches: match {:.3f} with {} tokens → order {:.3f}"
_WITH_FILE = "token sketches: match {:.3f} with {} tokens, {:.3f} with the rest of its file → order {:.3f}"
_UNMATCHED = "token sketches: match no sketch, by vector → order {:.3f}"


@dataclass(frozen=True, slots=True)
class Sketched:
    """Candidates in the order by token sketches, best first, and the best rare match among them (`Matches`)."""

    scored: list[Scored]
    rare_match: float


def by_sketches(scored: Sequence[Scored], matches: Matches, weights: Weights = COMMITTED.weights) -> Sketched:
    """Order fused candidates by how their sketches match the query; `matches` are theirs, in their order."""
    vector = np.array([item.vector_score or 0.0 for item in scored])
    ran = bool(scored) and scored[0].text_score is not None
    text = np.array([item.text_score or 0.0 for item in scored]) if ran else None
    order = sketch_order(matches, vector, text, best_coverage(scored), weights)
    ordered = []
    of_chunks, of_files = matches.match.tolist(), matches.file_match.tolist()
    for item, value, match, whole, tokens in zip(
        scored, order.tolist(), of_chunks, of_files, matches.tokens.tolist(), strict=True
    ):
        known = not np.isnan(match)
        change = Change(_MATCHED, (match, tokens, value)) if known else Change(_UNMATCHED, (value,))
        if round(whole - match, 3) > 0:
            change = Change(_WITH_FILE, (match, tokens, whole, value))
        ordered.append(
            Scored(
                item.candidate,
                order=value,
                score=min(max(value, 0.0), 1.0),
                vector_score=item.vector_score,
                text_score=item.text_score,
                rerank_score=min(max(match, 0.0), 1.0) if known else None,
                weights=item.weights,
                changes=(*item.changes, change),
            )
        )
    return Sketched(by_score(ordered), best_rare_match(matches))


def calibrated(
    scored: Sequence[Scored], evidence: Evidence, scoring: Scoring = COMMITTED, *, subject: bool = True
) -> list[Scored]:
    """Give candidates of one query, best first, their absolute scores, which fall as the order does.

    The best text hit keeps at least DEFAULT_MIN_SCORE where it holds the whole query: an identifier that the vectors
    know nothing of is returned.

    Args:
        scored: the candidates.
        evidence: what the query is and found.
        scoring: the model's.
        subject: whether the query says what it is about; where it does not, nothing answers it.
    """
    if not scored:
        return []
    vector = scored[0].vector_score is not None
    text = scored[0].text_score is not None
    chosen = scoring.calibration(vector=vector, text=text, sketches=evidence.rare_match is not None)
    order = np.array([item.order for item in scored])
    scores = calibrated_scores(chosen, order, evidence) * (1.0 if subject else _NO_SUBJECT)
    best = best_text_hit(scored)
    found = _found(evidence, text=text, subject=subject)
    result, risen = [], False
    for item, score in zip(scored, scores.tolist(), strict=True):
        floor = DEFAULT_MIN_SCORE if subject and item is best and evidence.coverage >= 1.0 else 0.0
        raised = score < floor
        risen = risen or raised
        shown = floor if raised else score
        change = Change(_RAISED if raised else _CALIBRATED, (item.order, found, shown))
        result.append(
            Scored(
                item.candidate,
                item.order,
                shown,
                item.vector_score,
                item.text_score,
                item.rerank_score,
                item.weights,
                (*item.changes, change),
            )
        )
    return by_score(result) if risen else result


def by_cross_encoder(scored: Sequence[Scored], scores: Mapping[str, float], min_score: float) -> list[Scored]:
    """Blend a cross-encoder's scores, by chunk id, into those of the candidates that it saw; the others stay behind.

    A chunk that contains the whole query keeps at least `min_score` if it had it: a small model does not know every
    identifier.
    """
    blended, others = [], []
    for item in scored:
        score = scores.get(item.candidate.chunk.id)
        if score is None:
            others.append(item)
            continue
        value = (1 - CROSS_ENCODER_WEIGHT) * item.score + CROSS_ENCODER_WEIGHT * score
        value = max(value, item.floor(min_score))
        change = Change("cross-encoder: {:.3f}, blended by {:g} → {:.3f}", (score, CROSS_ENCODER_WEIGHT, value))
        blended.append(item.with_score(value, change, rerank_score=score))
    lowest = min((item.score for item in blended), default=1.0)
    change = Change("behind what the cross-encoder saw")
    behind = [
        item if item.score < lowest or lowest < item.floor(min_score) else item.with_score(lowest, change)
        for item in others
    ]
    return sorted([*by_score(blended), *behind], key=lambda item: -item.score)  # of equal ones, what it saw is first


def _found(evidence: Evidence, *, text: bool, subject: bool) -> str:
    """Tell a person what a query is and found."""
    parts = [f"a query of {evidence.words} words, {evidence.rarity:.1f} nats a byte"]
    parts += [] if subject else ["without a subject"]
    parts += [f"{evidence.coverage:.0%} of its weight found by words"] if text else []
    parts += [] if evidence.rare_match is None else [f"rare tokens matched {evidence.rare_match:.3f}"]
    return ", ".join(parts)


def best_coverage(scored: Sequence[Scored]) -> float:
    """Give the share of the query that the best text hit holds."""
    best = best_text_hit(scored)
    return (best.candidate.coverage or 0.0) if best else 0.0
