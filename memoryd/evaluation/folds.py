"""Folds for cross-validation: what is chosen on the others is measured on the one left out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

FOLDS = 5
_SETS = 3


class Named(Protocol):
    """Something of a set's query."""

    @property
    def name(self) -> str:
        """The set."""
        ...

    @property
    def query(self) -> str:
        """The query's id."""
        ...


def folds(items: Sequence[Named]) -> list[list[int]]:
    """Give the places of each fold, 5 of queries, chosen by a hash of their ids; empty folds are left out.

    What is made of one query is in one fold.
    """
    found: list[list[int]] = [[] for _ in range(FOLDS)]
    for place, item in enumerate(items):
        digest = hashlib.sha256(f"{item.name}\n{item.query}".encode()).digest()
        found[digest[0] % FOLDS].append(place)
    return [fold for fold in found if fold]


def by_set(items: Sequence[Named]) -> list[list[int]]:
    """Give the places of each set, where there are 3 or more; else folds of queries."""
    names = sorted({item.name for item in items})
    if len(names) < _SETS:
        return folds(items)
    return [[place for place, item in enumerate(items) if item.name == name] for name in names]
