"""The five ways to search, each tried on what was observed: the order of the candidates, and what their score knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.calibration import SKETCH_DEPTH, Evidence, best_rare_match, sketch_order
from memoryd.domain.queries import DEFAULT_RESULTS
from memoryd.domain.scoring import Weights
from memoryd.domain.sketches import Matches
from memoryd.evaluation.metrics import ndcg
from memoryd.evaluation.observations import Kind, Observation, Recorded

_RECIPROCAL = 60  # k, as its authors chose it


class Way(StrEnum):
    """A way to search, by the name of its calibration in `Scoring`."""

    HYBRID_SKETCHES = "hybrid_sketches"
    VECTOR_SKETCHES = "vector_sketches"
    HYBRID = "hybrid"
    VECTOR = "vector"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates of a query in one way: their documents and ordering scores, best first, and what is known of all."""

    documents: tuple[str, ...]
    order: NDArray[np.float64]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Example:
    """One chunk to tell apart: the right one of an answerable query, or the best of another.

    Attributes:
        name: the set.
        query: the query's id.
        kind: of the query.
        order: the ordering score of the query's best chunk.
        behind: how far the chunk's is below it, at least 0.
        evidence: of the query.
        shown: of the first 6 documents how far their best chunks are behind, and whether they are right.
    """

    name: str
    query: str
    kind: Kind
    order: float
    behind: float
    evidence: Evidence
    shown: tuple[tuple[float, bool], ...]


def rank_offline(recorded: Recorded, way: Way, weights: Weights) -> Ranked | None:
    """Order a query's candidates as search does; None where there are none, or what the way needs is missing."""
    seen = recorded.text if way is Way.TEXT else recorded.both
    if way is Way.TEXT:
        order, coverage = _text(seen)
        return _ranked(seen, order, coverage, None, found=seen.bm25 > 0)
    if seen.vector is None:
        return None
    hybrid = way in {Way.HYBRID, Way.HYBRID_SKETCHES}
    text, coverage = _text(seen) if hybrid else (None, 0.0)
    fused = seen.vector if text is None else (1 - weights.text) * seen.vector + weights.text * text
    if way in {Way.HYBRID, Way.VECTOR}:
        return _ranked(seen, fused, coverage, None)
    if seen.matches is None:
        return None
    matches = _of_the_first(seen.matches, fused)
    order = sketch_order(matches, np.minimum(seen.vector, 1.0), text, coverage, weights)
    return _ranked(seen, order, coverage, best_rare_match(matches))


def example(recorded: Recorded, way: Way, weights: Weights) -> Example | None:
    """Give the chunk to tell apart.

    None where a right one is not among the first 6 documents: no score limit would bring it back.
    """
    ranked = rank_offline(recorded, way, weights)
    if ranked is None:
        return None
    first = float(ranked.order[0])
    shown = tuple(
        (first - float(ranked.order[place]), name in recorded.relevant)
        for place, name in _distinct(ranked, recorded, DEFAULT_RESULTS)
    )
    behind: float | None = 0.0
    if recorded.kind is Kind.ANSWERABLE:
        behind = next((below for below, right in shown if right), None)
    if behind is None:
        return None
    return Example(recorded.name, recorded.query, recorded.kind, first, behind, ranked.evidence, shown)


def ndcg_offline(recorded: Recorded, way: Way, weights: Weights) -> float:
    """Give nDCG@10 of an answerable query; 0 where it finds nothing."""
    return _ndcg(rank_offline(recorded, way, weights), recorded)


def reciprocal_ndcg(recorded: Recorded) -> float:
    """Give nDCG@10 of reciprocal rank fusion of both legs (Cormack, Clarke and Büttcher 2009), as a reference."""
    seen = recorded.both
    legs = [seen.bm25] if seen.vector is None else [seen.vector, seen.bm25]
    order = np.zeros(len(seen.documents))
    for leg in legs:
        ranks = np.empty(len(leg))
        ranks[np.argsort(-leg, kind="stable")] = np.arange(1, len(leg) + 1)
        order += np.where(leg > 0, 1 / (_RECIPROCAL + ranks), 0.0)
    return _ndcg(_ranked(seen, order, 0.0, None), recorded)


def _ndcg(ranked: Ranked | None, recorded: Recorded) -> float:
    documents = [name for _, name in _distinct(ranked, recorded, 10)] if ranked else []
    return ndcg(documents, recorded.relevant, 10)


def _distinct(ranked: Ranked, recorded: Recorded, most: int) -> Iterator[tuple[int, str]]:
    """Give the first so many documents, each with the place of its best chunk."""
    seen: set[str] = set()
    for place, name in enumerate(ranked.documents):
        if name in seen or name in recorded.ignored:
            continue
        seen.add(name)
        yield place, name
        if len(seen) == most:
            return


def _text(seen: Observation) -> tuple[NDArray[np.float64], float]:
    """Give the text scores, and the share of the query that the best text hit holds."""
    best = int(np.argmax(seen.bm25)) if seen.bm25.size else 0
    if not seen.bm25.size or seen.bm25[best] <= 0:
        return np.zeros(len(seen.documents)), 0.0
    coverage = float(seen.coverage[best])
    return np.minimum(seen.bm25 * (coverage / seen.bm25[best]), 1.0), coverage


def _of_the_first(matches: Matches, fused: NDArray[np.float64]) -> Matches:
    """Forget the matches of those for which no sketches would be fetched.

    What files match stays that of all candidates: which are the first differs by the weights that are tried.
    """
    beyond = np.argsort(-fused, kind="stable")[SKETCH_DEPTH:]
    match, rare_match = matches.match.copy(), matches.rare_match.copy()
    match[beyond] = rare_match[beyond] = np.nan
    return replace(matches, match=match, rare_match=rare_match)


def _ranked(
    seen: Observation,
    order: NDArray[np.float64],
    coverage: float,
    rare_match: float | None,
    found: NDArray[np.bool_] | None = None,
) -> Ranked | None:
    places = np.argsort(-order, kind="stable")
    if found is not None:
        places = places[found[places]]
    if not places.size:
        return None
    documents = tuple(seen.documents[place] for place in places)
    return Ranked(documents, order[places], Evidence(seen.words, seen.rarity, coverage, rare_match))
