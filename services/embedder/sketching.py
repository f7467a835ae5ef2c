"""From the token vectors of a forward pass to what is kept of them: a passage's sketch, a query's tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.sketches import QueryTokens, centre, make_sketch
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import TextKind

Sketched = bytes | QueryTokens
Sketch = Callable[[Sequence[int], NDArray[np.float32]], Sketched]


@dataclass(frozen=True, slots=True)
class Sketcher:
    """Sketches of one model. Methods take a text's token ids and their vectors, shape (at least tokens, dimensions)."""

    tokenizer: ModelTokenizer
    mean: NDArray[np.float32]

    def of(self, kind: TextKind) -> Sketch:
        """Give what to do with texts of a kind."""
        return self.query if kind is TextKind.QUERY else self.passage

    def passage(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> bytes:
        """Make a passage's sketch."""
        kept = self.tokenizer.kept(ids, TextKind.PASSAGE)
        return make_sketch(vectors[: len(ids)][kept], self.mean)

    def query(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> QueryTokens:
        """Make a query's tokens; there may be none."""
        kept = self.tokenizer.kept(ids, TextKind.QUERY)
        return QueryTokens(centre(vectors[: len(ids)][kept], self.mean), self.tokenizer.rarity(ids)[kept])
