"""Queries that have no answer in a set's documents: other sets' questions, and gibberish."""

from __future__ import annotations

import random
from collections.abc import Sequence

from memoryd.evaluation.sets import Query, RetrievalSet

_FOREIGN = 100
_GIBBERISH = 40
_LATIN = "bcdfghjklmnpqrstvwxz"
# First and last of a block of common Han characters: drawn at random they make no word.
_HAN = (0x4E00, 0x9FA5)


def foreign(data: RetrievalSet, others: Sequence[RetrievalSet]) -> list[Query]:
    """Take up to 100 answerable queries of other sets, as many of each, for the groups of this set in turn."""
    queries = []
    for other in (other for other in others if other.name != data.name):
        asked = [query for query in other.queries if query.answerable]
        wanted = max(1, _FOREIGN // max(1, len(others) - 1))
        queries += [(other.name, query) for query in asked[:: max(1, -(-len(asked) // wanted))]]
    return [
        Query(f"foreign:{name}:{query.id}", data.groups[n % len(data.groups)], query.text, answerable=False)
        for n, (name, query) in enumerate(queries)
    ]


def gibberish(data: RetrievalSet) -> list[Query]:
    """Make queries that mean nothing, the same for every set: letters without vowels, digits, random Han characters."""
    rng = random.Random(0)  # noqa: S311  (repeatable text, no secret)
    makers = (_letters, _letters, _letters, _han)
    return [
        Query(
            f"gibberish:{n}",
            data.groups[n % len(data.groups)],
            " ".join(makers[n % len(makers)](rng) for _ in range(rng.randint(1, 6))),
            answerable=False,
        )
        for n in range(_GIBBERISH)
    ]


def _letters(rng: random.Random) -> str:
    return "".join(rng.choices(_LATIN, k=rng.randint(3, 10)))


def _han(rng: random.Random) -> str:
    return "".join(chr(rng.randint(*_HAN)) for _ in range(rng.randint(2, 5)))
