"""The registry of generations: which there are, which one answers, and how far each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memoryd.domain.generations import Generation, Progress


@dataclass(frozen=True, slots=True)
class Current:
    """Which generation answers searches.

    Attributes:
        id: the generation; empty where there is none yet.
        wanted: the generation of the configured model when this was put: a later start finds by it whether somebody
            has configured another one since.
        entry: the key's own revision, for compare-and-set; 0 where there is none yet.
    """

    id: str = ""
    wanted: str = ""
    entry: int = 0


@dataclass(frozen=True, slots=True)
class Registry:
    """All records at one time, oldest first. `sequence` grows with every change."""

    current: Current
    generations: tuple[Generation, ...]
    sequence: int

    def get(self, generation_id: str) -> Generation | None:
        """Find a record."""
        return next((each for each in self.generations if each.id == generation_id), None)


class Generations(Protocol):
    """The records of generations, and the key `current`. Shared by all processes of a deployment."""

    async def read(self) -> Registry:
        """Read all records, fresh."""
        ...

    async def put(self, generation: Generation) -> Generation:
        """Put a record if it still is at `generation.entry` (0: there is none); returns it with its new entry.

        Raises ConflictError where somebody else has put it meanwhile.
        """
        ...

    async def remove(self, generation: Generation) -> None:
        """Remove a record, if it still is at `generation.entry`, with its progress. Raises ConflictError likewise."""
        ...

    async def move(self, to: str, *, wanted: str, expected: Current) -> Current:
        """Let another generation answer, if the key still is at `expected.entry`.

        Raises ConflictError where somebody else has moved it meanwhile.
        """
        ...

    async def wait(self, after: int, timeout: float) -> int:
        """Wait until the sequence is greater than `after`, at most `timeout` seconds; returns it."""
        ...

    async def report(self, generation_id: str, progress: Progress) -> None:
        """Tell how far a generation is: the last report stands."""
        ...

    async def progress(self, generation_id: str) -> Progress | None:
        """Read the last report; None where there was none."""
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...
