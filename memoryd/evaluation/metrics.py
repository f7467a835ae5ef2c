"""Metrics of rankings and of scores: binary judgements, as trec_eval defines them, checked against it in the tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np


def recall(ranking: Sequence[str], relevant: AbstractSet[str], cut: int) -> float:
    """Share of the relevant documents among the first `cut`."""
    return len(relevant & set(ranking[:cut])) / len(relevant)


def ndcg(ranking: Sequence[str], relevant: AbstractSet[str], cut: int) -> float:
    """Normalised discounted cumulative gain of the first `cut` (Järvelin and Kekäläinen 2002, log base 2)."""
    gain = sum(1 / math.log2(rank + 2) for rank, document in enumerate(ranking[:cut]) if document in relevant)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(cut, len(relevant))))
    return gain / ideal


def reciprocal_rank(ranking: Sequence[str], relevant: AbstractSet[str], cut: int) -> float:
    """One over the rank of the first relevant document, 0 where it is beyond `cut`."""
    return next((1 / rank for rank, document in enumerate(ranking[:cut], 1) if document in relevant), 0.0)


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Chance that a positive scores above a negative, a tie counting half (Mann and Whitney 1947)."""
    above, below = np.sort(np.asarray(positives)), np.asarray(negatives)
    less = len(above) - np.searchsorted(above, below, side="right")
    ties = np.searchsorted(above, below, side="right") - np.searchsorted(above, below, side="left")
    return float((less + ties / 2).sum() / (len(above) * len(below)))


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
