"""Maximal marginal relevance: near-duplicates move down, so that few results say many things.

Carbonell and Goldstein, "The use of MMR, diversity-based reranking" (SIGIR 1998): the next result is the one with the
greatest λ × relevance - (1 - λ) × similarity to the most similar one before it.

Texts are compared by their index terms, which every leg returns: it needs no vector (so it works when the embedder is
down), and texts of any script are near-duplicates where they share words, while unrelated ones are at 0; cosines of
many models never come near 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray


def diversify(relevance: Sequence[float], terms: Sequence[AbstractSet[str]], balance: float, count: int) -> list[int]:
    """Give the places of the first `count` candidates in their new order. Takes O(count x candidates) comparisons.

    The first one is the most relevant, and the order of the first k does not depend on `count`.

    Args:
        relevance: of each candidate, at least 0, best first; only their ratios to the first one count.
        terms: of each candidate.
        balance: λ, 0 to 1: the weight of relevance against novelty; 1 keeps the order.
        count: how many are wanted.
    """
    if not relevance:
        return []
    compare = _Similarity(terms)
    best = relevance[0] if relevance[0] > 0 else 1.0
    worth = np.asarray(relevance, np.float64) / best * balance
    closest = np.zeros(len(worth))
    chosen: list[int] = []
    for _ in range(min(count, len(worth))):
        # argmax gives the first of equals: the more relevant one.
        value = worth - (1.0 - balance) * closest
        value[chosen] = -np.inf
        chosen.append(int(np.argmax(value)))
        closest = np.maximum(closest, compare.to(chosen[-1]))
    return chosen


class _Similarity:
    """Weighted Jaccard similarity of sets of terms, 0 to 1.

    A term counts by how few of the candidates hold it: all of them hold words of the query, which makes none a copy.
    """

    def __init__(self, terms: Sequence[AbstractSet[str]]) -> None:
        held = Counter(term for each in terms for term in each)
        columns = {term: column for column, term in enumerate(held)}
        self._rows = np.zeros((len(terms), len(columns)), np.float32)
        for row, each in enumerate(terms):
            self._rows[row, [columns[term] for term in each]] = 1.0
        self._weights = np.log1p(len(terms) / np.fromiter(held.values(), np.float32, len(held)))
        self._sums = self._rows @ self._weights

    def to(self, index: int) -> NDArray[np.float64]:
        """Compare one with all, shape (candidates,)."""
        shared = self._rows @ (self._rows[index] * self._weights)
        either = self._sums + self._sums[index] - shared
        similarity = np.zeros(len(shared))
        np.divide(shared, either, out=similarity, where=either > 0)
        return similarity
