"""Fitting a calibration, as `domain/scoring` tells: a logistic regression for each way to search.

It tells the right chunk of an answerable query from the best chunk of a query that has no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.calibration import calibrated_scores
from memoryd.domain.queries import DEFAULT_MIN_SCORE
from memoryd.domain.scoring import Calibration, Weights
from memoryd.evaluation.folds import by_set
from memoryd.evaluation.logistic import regress
from memoryd.evaluation.metrics import auroc
from memoryd.evaluation.observations import Kind, Recorded
from memoryd.evaluation.ways import Example, Way, example, rank_offline

# How much the queries of a kind weigh together, in each set alike. A query about what a workspace is about, but whose
# answer it does not hold, is hardly told apart: it must not spoil what can be. Queries whose answer was withheld are
# of that sort, but stand in for foreign ones.
_SHARES = {
    Kind.ANSWERABLE: 1.0,
    Kind.FOREIGN: 0.55,
    Kind.WITHHELD: 0.55,
    Kind.GIBBERISH: 0.45,
    Kind.UNANSWERABLE: 0.3,
}
_SET_WEIGHT = 100.0
# What is fitted in each way, beside the intercept and the distance.
_FITTED = {
    Way.HYBRID_SKETCHES: ("order", "rare_match", "words", "unfound"),
    Way.VECTOR_SKETCHES: ("order", "rare_match", "unfound"),
    Way.HYBRID: ("order", "words", "unfound"),
    Way.VECTOR: ("order", "unfound"),
    Way.TEXT: ("order", "words", "unfound"),
}
_ORDER = 2.0
_SMALLEST_ORDER = 0.5
_KEPT = 0.98
# AUROC that the distance may cost, see `domain/scoring`, and the shares of the likeliest one that are tried.
_COST = 0.004
_TRIED = [step / 8 for step in range(8, 0, -1)]
FEWEST = 20
"""Right chunks, and chunks of queries without an answer, that a fit needs at least."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How well right chunks are told apart; each figure as a mean over the sets.

    Attributes:
        auroc: chance that the right chunk scores above the best chunk of a query without an answer.
        kept: share of the right chunks at DEFAULT_MIN_SCORE or above.
        answered: by kind of query without an answer: share of them that are.
    """

    auroc: float
    kept: float
    answered: Mapping[Kind, float]

    def as_json(self) -> dict[str, Any]:
        """Name the figures as they are published."""
        return {
            "auroc": self.auroc,
            "kept": self.kept,
            "answered": {kind.value: share for kind, share in self.answered.items()},
        }


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted calibration.

    Attributes:
        calibration: by all examples.
        before: figures of the constants of today.
        after: figures of the new ones, each example scored by a fit that has not seen its fold.
        examples: how many there are, by kind.
    """

    calibration: Calibration
    before: Figures
    after: Figures
    examples: Mapping[Kind, int]

    def as_json(self) -> dict[str, Any]:
        """Name the figures as they are published."""
        return {
            "calibration": asdict(self.calibration),
            "before": self.before.as_json(),
            "held_out": self.after.as_json(),
            "examples": {kind.value: count for kind, count in self.examples.items()},
        }


def fit_way(recorded: Sequence[Recorded], way: Way, weights: Weights, today: tuple[Weights, Calibration]) -> Fit | None:
    """Fit one way's calibration; None where too little was recorded for it.

    Args:
        recorded: the queries.
        way: the way.
        weights: of the order that is to be calibrated.
        today: the weights and calibration to compare with.
    """
    examples = _examples(recorded, way, weights)
    right = sum(each.kind is Kind.ANSWERABLE for each in examples)
    if min(right, len(examples) - right) < FEWEST:
        return None
    silent = _silent(recorded, way, weights)
    held_out = list(silent)
    for fold in by_set(examples):
        left_out = set(fold)
        fitted = _fit([each for place, each in enumerate(examples) if place not in left_out], way)
        held_out += [_score(fitted, examples[place]) for place in fold]
    old_weights, old = today
    before = _silent(recorded, way, old_weights)
    before += [_score(old, each) for each in _examples(recorded, way, old_weights)]
    counts = Counter(each.kind for each in examples)
    return Fit(_fit(examples, way), figures(before), figures(held_out), counts)


def score_of(calibration: Calibration, item: Example) -> float:
    """Score an example's chunk."""
    order = np.array([item.order, item.order - item.behind])
    return float(calibrated_scores(calibration, order, item.evidence)[1])


def figures(scored: Iterable[tuple[str, Kind, float]]) -> Figures:
    """Sum scores up, each with its set and kind; there must be some of both sorts in a set."""
    by_name: dict[str, dict[Kind, list[float]]] = {}
    for name, kind, score in scored:
        by_name.setdefault(name, {}).setdefault(kind, []).append(score)
    kinds = [kind for kind in Kind if kind is not Kind.ANSWERABLE]
    pairs = [
        (right, [score for kind in (Kind.FOREIGN, Kind.WITHHELD, Kind.GIBBERISH) for score in of_set.get(kind, ())])
        for of_set in by_name.values()
        if (right := of_set.get(Kind.ANSWERABLE))
    ]
    return Figures(
        auroc=fmean(auroc(right, wrong) for right, wrong in pairs if wrong),
        kept=fmean(_share(right) for right, _ in pairs),
        answered={
            kind: fmean(_share(of_set[kind]) for of_set in by_name.values() if kind in of_set)
            for kind in kinds
            if any(kind in of_set for of_set in by_name.values())
        },
    )


def _share(scores: Sequence[float]) -> float:
    return fmean(score >= DEFAULT_MIN_SCORE for score in scores)


def _score(calibration: Calibration, item: Example) -> tuple[str, Kind, float]:
    return item.name, item.kind, score_of(calibration, item)


def _silent(recorded: Sequence[Recorded], way: Way, weights: Weights) -> list[tuple[str, Kind, float]]:
    """List what has no answer and finds nothing at all: it is not answered, whatever the constants."""
    others = [each for each in recorded if each.kind is not Kind.ANSWERABLE]
    return [(each.name, each.kind, 0.0) for each in others if rank_offline(each, way, weights) is None]


def _examples(recorded: Sequence[Recorded], way: Way, weights: Weights) -> list[Example]:
    return [found for each in recorded if (found := example(each, way, weights)) is not None]


def _fit(examples: Sequence[Example], way: Way) -> Calibration:
    order = np.array([each.order for each in examples])
    columns = {
        "order": order,
        "rare_match": np.array([each.evidence.rare_match or 0.0 for each in examples]),
        "words": np.array([each.evidence.log_words for each in examples]),
        "unfound": np.array([each.evidence.unfound for each in examples]),
    }
    labels = np.array([each.kind is Kind.ANSWERABLE for each in examples], np.float64)
    names = list(_FITTED[way])
    while True:
        features = np.column_stack([columns[name] for name in names])
        coefficients = regress(features, labels, _weights(examples), _ORDER * order)
        found = dict(zip(names, coefficients.tolist(), strict=False))
        # A score must fall as the order does, and improbable words that are not found must not raise it.
        wrong = {"order"} if found.get("order", 0.0) + _ORDER < _SMALLEST_ORDER else set()
        wrong |= {"unfound"} if found.get("unfound", 0.0) > 0 else set()
        if not wrong:
            break
        names = [name for name in names if name not in wrong] or ["words"]
    found["order"] = found.get("order", 0.0) + _ORDER
    slopes = Calibration(**({"intercept": 0.0, "unfound": 0.0} | found))
    slopes = replace(slopes, distance=_distance(slopes, examples))
    return replace(slopes, intercept=_intercept(slopes, examples))


def _weights(examples: Sequence[Example]) -> NDArray[np.float64]:
    counts = Counter((each.name, each.kind) for each in examples)
    return np.array([_SHARES[each.kind] * _SET_WEIGHT / counts[each.name, each.kind] for each in examples])


def _distance(slopes: Calibration, examples: Sequence[Example]) -> float:
    """Find the distance, at least 0: as much of the likeliest one as does not cost too much AUROC.

    The likeliest one tells right from wrong among the first documents of answerable queries. The more of it, the fewer
    wrong ones are shown, but the lower is the right one where it is not the first, so that more is answered wrongly.
    """
    answerable = [each for each in examples if each.kind is Kind.ANSWERABLE]
    counts = Counter(each.name for each in answerable)
    alone = replace(slopes, distance=0.0)
    rows = [
        (-behind, right, _SET_WEIGHT / counts[each.name], odds)
        for each in answerable
        for odds in [_log_odds(score_of(alone, replace(each, behind=0.0)))]
        for behind, right in each.shown
    ]
    below, labels, weights, odds = np.array(rows, np.float64).T
    likeliest = max(float(regress(below[:, None], labels, weights, odds)[0]), 0.0)
    least = _auroc(alone, examples) - _COST
    tried = (replace(slopes, distance=share * likeliest) for share in _TRIED)
    return next((each.distance for each in tried if _auroc(each, examples) >= least), 0.0)


def _auroc(calibration: Calibration, examples: Sequence[Example]) -> float:
    return figures(_score(calibration, each) for each in examples).auroc


def _intercept(slopes: Calibration, examples: Sequence[Example]) -> float:
    """Find what keeps so many of the right chunks at DEFAULT_MIN_SCORE, both over all and as a mean over the sets."""
    limit = _log_odds(DEFAULT_MIN_SCORE)
    right = [each for each in examples if each.kind is Kind.ANSWERABLE]
    odds = np.array([_log_odds(score_of(slopes, each)) for each in right])
    names = np.array([each.name for each in right])
    for intercept in np.sort(limit - odds):
        kept = odds + intercept >= limit - 1e-9
        if min(kept.mean(), fmean(float(kept[names == name].mean()) for name in set(names.tolist()))) >= _KEPT:
            return float(intercept)
    raise AssertionError("the largest one keeps all")


def _log_odds(score: float) -> float:
    score = min(max(score, 1e-12), 1 - 1e-12)
    return float(np.log(score) - np.log1p(-score))
