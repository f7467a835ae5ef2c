"""Generations of one model: what one of them has embedded, the others need not embed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from memoryd.domain.generations import Generation
from memoryd.generations.parts import Parts
from memoryd.ports import VectorStore

Others = Callable[[], Sequence[VectorStore]]
"""Tells the vector stores in which a text's vector and sketch are the very same, if it is there."""


class Kin:
    """The generations that are open in this process."""

    def __init__(self) -> None:
        self._open: dict[str, Parts] = {}

    @contextmanager
    def member(self, parts: Parts) -> Iterator[Others]:
        """Count a generation in until the context ends; gives what tells the stores of the others like it."""
        generation = parts.generation

        def others() -> Sequence[VectorStore]:
            return [
                each.vectors
                for name, each in self._open.items()
                if name != generation.id and _alike(each.generation, generation)
            ]

        self._open[generation.id] = parts
        try:
            yield others
        finally:
            del self._open[generation.id]


def _alike(one: Generation, other: Generation) -> bool:
    """Whether both make the same of a text: chunker, analyzer and redaction decide which texts there are, no more."""
    return (one.model.fingerprint, one.model.dimensions, one.model.sketches, one.versions.get("sketch")) == (
        other.model.fingerprint,
        other.model.dimensions,
        other.model.sketches,
        other.versions.get("sketch"),
    )
