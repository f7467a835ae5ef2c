"""Finding the weights of the order again: many are tried on recorded candidates, and the choice is cross-validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.calibration import less_by_length
from memoryd.domain.scoring import Weights
from memoryd.errors import InvalidInputError
from memoryd.evaluation.bootstrap import interval
from memoryd.evaluation.folds import folds
from memoryd.evaluation.observations import Kind, Recorded
from memoryd.evaluation.ways import Way, ndcg_offline, reciprocal_ndcg

_TEXT = [step / 20 for step in range(21)]
_SKETCH_TEXT = [step / 10 for step in range(0, 21, 2)]
_PENALTY = [0.0, 0.01, 0.02, 0.03, 0.05, 0.08]
_FILE = [0.0, 0.25, 0.5, 0.75]
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """Weights of one order, chosen by mean nDCG@10 over sets.

    Attributes:
        way: the one it is the order of.
        names: the weights that were varied.
        today: those of today.
        chosen: the best over all queries.
        before: nDCG@10 by set of today's.
        after: by set of the chosen ones, over all queries.
        held_out: by set, each query with the weights that the other folds' queries choose.
        folds: what each fold's others chose, with nDCG@10 over its own queries, of today's and of these.
        low: lower end of the 95 % interval of the mean gain over all queries, held out.
        high: its upper end.
        reference: by set, of reciprocal rank fusion of the legs; None beside an order by sketches.
        above: 95 % interval of today's mean gain over that; None as well.
    """

    way: Way
    names: tuple[str, ...]
    today: Weights
    chosen: Weights
    before: Mapping[str, float]
    after: Mapping[str, float]
    held_out: Mapping[str, float]
    folds: Sequence[tuple[Weights, float, float]]
    low: float
    high: float
    reference: Mapping[str, float] | None = None
    above: tuple[float, float] | None = None

    @property
    def gains(self) -> bool:
        """Whether the gain, held out, is more than chance."""
        return self.low > 0


def tune(recorded: Sequence[Recorded], today: Weights) -> list[Choice]:
    """Choose the weights of the fused order, and of that by sketches where there are any.

    Raises InvalidInputError where there are too few answerable queries.
    """
    queries = [each for each in recorded if each.kind is Kind.ANSWERABLE]
    if len(queries) < _FEWEST:
        raise InvalidInputError(f"{len(queries)} queries have an answer: to choose weights, {_FEWEST} are needed")
    fused = [replace(today, text=text) for text in _TEXT]
    choices = [_choose(queries, Way.HYBRID, ("text",), today, fused)]
    if any(each.both.matches is not None for each in queries):
        best = replace(today, text=choices[0].chosen.text) if choices[0].gains else today
        grid = [
            likely_match(queries, replace(best, length_penalty=penalty, sketch_text=sketch_text, file=file))
            for penalty in _PENALTY
            for sketch_text in _SKETCH_TEXT
            for file in _FILE
        ]
        choices.append(_choose(queries, Way.HYBRID_SKETCHES, ("sketch_text", "length_penalty", "file"), today, grid))
    return choices


def chosen(choices: Iterable[Choice], today: Weights) -> Weights:
    """Give what to use: of each choice that gains, the chosen weights, and else those of today."""
    weights = today
    for choice in choices:
        if choice.gains:
            names = [*choice.names, *(("match_offset", "match_slope") if "sketch_text" in choice.names else ())]
            weights = replace(weights, **{name: getattr(choice.chosen, name) for name in names})
    return weights


def likely_match(queries: Sequence[Recorded], weights: Weights) -> Weights:
    """Fit what stands in for a match where a chunk has no sketch: least squares by the vector score."""
    pairs = [
        (each.both.vector, less_by_length(each.both.matches, weights))
        for each in queries
        if each.both.matches is not None and each.both.vector is not None
    ]
    vector = np.minimum(np.concatenate([pair[0] for pair in pairs]), 1.0)
    match = np.concatenate([pair[1] for pair in pairs])
    known = ~np.isnan(match)
    if known.sum() <= _FEWEST or np.ptp(vector[known]) == 0:
        return weights
    slope, offset = np.polyfit(vector[known], match[known], 1)
    return replace(weights, match_offset=float(offset), match_slope=float(slope))


def _choose(
    queries: Sequence[Recorded], way: Way, names: tuple[str, ...], today: Weights, grid: Sequence[Weights]
) -> Choice:
    values = np.array([[ndcg_offline(each, way, weights) for each in queries] for weights in [today, *grid]])
    means = _Means(queries)
    held_out, told = np.zeros(len(queries)), []
    for fold in folds(queries):
        rest = np.setdiff1d(np.arange(len(queries)), fold)
        best = _best(values, means, rest, names, [today, *grid])
        held_out[fold] = values[best, fold]
        told.append(([today, *grid][best], float(values[0, fold].mean()), float(values[best, fold].mean())))
    best = _best(values, means, np.arange(len(queries)), names, [today, *grid])
    low, high = interval((held_out - values[0]).tolist())
    reciprocal = np.array([reciprocal_ndcg(each) for each in queries]) if way is Way.HYBRID else None
    return Choice(
        way=way,
        names=names,
        today=today,
        chosen=[today, *grid][best],
        before=means.by_set(values[0]),
        after=means.by_set(values[best]),
        held_out=means.by_set(held_out),
        folds=told,
        low=low,
        high=high,
        reference=None if reciprocal is None else means.by_set(reciprocal),
        above=None if reciprocal is None else interval((values[0] - reciprocal).tolist()),
    )


class _Means:
    """Means by set."""

    def __init__(self, queries: Sequence[Recorded]) -> None:
        self._names = np.array([each.name for each in queries])

    def by_set(self, values: NDArray[np.float64], places: NDArray[np.int64] | None = None) -> dict[str, float]:
        names = self._names if places is None else self._names[places]
        of_places = values if places is None else values[places]
        return {str(name): float(of_places[names == name].mean()) for name in np.unique(names)}


def _best(
    values: NDArray[np.float64],
    means: _Means,
    places: NDArray[np.int64],
    names: tuple[str, ...],
    tried: Sequence[Weights],
) -> int:
    """Choose the best mean over sets; of equal ones that nearest to today's, which is the first."""

    def worth(place: int) -> tuple[float, float]:
        mean = fmean(means.by_set(values[place], places).values())
        far = sum(abs(getattr(tried[place], name) - getattr(tried[0], name)) for name in names)
        return round(mean, 9), -far

    return max(range(len(tried)), key=worth)
