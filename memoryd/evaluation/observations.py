"""What a query found, with everything that orders and scores are made from, so that constants can be tried offline."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.sketches import Matches


class Kind(StrEnum):
    """What is known of a query."""

    ANSWERABLE = "answerable"
    UNANSWERABLE = "unanswerable"
    FOREIGN = "foreign"
    GIBBERISH = "gibberish"
    # An answerable one whose right documents are taken away: it stands in where there are no foreign ones.
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class Observation:
    """The candidates of one query; arrays have shape (candidates,).

    Attributes:
        documents: whose chunk each is.
        vector: scores of the vector leg, at least 0, not cut at 1; None where it did not run.
        bm25: of the text leg, 0 where it did not find one.
        coverage: the share of the query's weight that each holds, 0 to 1.
        matches: how well their sketches match, all of them; None where there are no sketches.
        words: distinct words of the query.
        rarity: how improbable they are, in nats a byte.
    """

    documents: tuple[str, ...]
    vector: NDArray[np.float64] | None
    bm25: NDArray[np.float64]
    coverage: NDArray[np.float64]
    matches: Matches | None
    words: int
    rarity: float

    def without(self, documents: AbstractSet[str]) -> Observation:
        """Leave out the chunks of some documents, as if these were not there."""
        kept = np.array([document not in documents for document in self.documents], bool)
        matches = self.matches
        return replace(
            self,
            documents=tuple(document for document in self.documents if document not in documents),
            vector=None if self.vector is None else self.vector[kept],
            bm25=self.bm25[kept],
            coverage=self.coverage[kept],
            matches=matches and matches.where(kept),
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """A query and what it found.

    Attributes:
        name: the set whose documents were searched.
        query: the query's id.
        kind: what is known of it.
        relevant: its right documents.
        ignored: documents that are neither right nor wrong.
        both: what both legs found.
        text: what the text leg finds where it is all there is.
    """

    name: str
    query: str
    kind: Kind
    relevant: frozenset[str]
    ignored: frozenset[str]
    both: Observation
    text: Observation

    def withheld(self) -> Recorded:
        """Take the right documents away."""
        return replace(
            self,
            kind=Kind.WITHHELD,
            relevant=frozenset(),
            both=self.both.without(self.relevant | self.ignored),
            text=self.text.without(self.relevant | self.ignored),
        )
