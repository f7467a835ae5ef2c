"""Queries and what they found, as tests of fitting make them up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memoryd.domain.sketches import Matches
from memoryd.evaluation.observations import Kind, Observation, Recorded

Rows = Sequence[Sequence[float]]


def observed(documents: str, rows: Rows, *, sketches: bool = True, words: int = 5, rarity: float = 3.0) -> Observation:
    """Make an observation: a document a letter, and of each chunk vector, BM25, coverage, match and rare match."""
    vector, bm25, coverage, match, rare_match = np.array(rows, np.float64).reshape(-1, 5).T
    match32 = match.astype(np.float32)
    matches = Matches(match32, match32, rare_match.astype(np.float32), np.full(len(match), 100))
    return Observation(tuple(documents), vector, bm25, coverage, matches if sketches else None, words, rarity)


def recorded(
    seen: Observation, kind: Kind = Kind.ANSWERABLE, *, right: str = "a", name: str = "s", query: str = "q"
) -> Recorded:
    """Make a record of it."""
    relevant = frozenset(right) if kind is Kind.ANSWERABLE else frozenset()
    return Recorded(name, query, kind, relevant, frozenset(), seen, seen)


def drawn(count: int, seed: int, *, name: str = "s", sketches: bool = True) -> Iterator[Recorded]:
    """Draw queries of every kind: right chunks have more of everything, and gibberish is improbable and not found.

    The vector of the right chunk, document `a`, is hardly above the others', and its BM25 is much above them.
    """
    rng = np.random.default_rng(seed)
    for kind in (Kind.ANSWERABLE, Kind.FOREIGN, Kind.GIBBERISH):
        for number in range(count):
            found = kind is not Kind.GIBBERISH
            rows = np.column_stack(
                [
                    rng.normal(0.5, 0.1, 8),
                    rng.uniform(1, 4, 8) * found,
                    np.full(8, 0.3 * found),
                    rng.normal(0.3, 0.05, 8),
                    rng.normal(0.3, 0.05, 8),
                ]
            )
            if kind is Kind.ANSWERABLE:
                rows[0] += [0.03, 4, 0.4, 0.2, 0.2]
            rarity = rng.normal(3.0 if found else 7.0, 0.3)
            seen = observed("abcdefgh", rows.tolist(), sketches=sketches, rarity=float(rarity))
            yield recorded(seen, kind, name=name, query=f"{kind} {number}")
