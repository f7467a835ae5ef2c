"""Chooses the lines at which a file is cut.

A range of lines that is too large is cut at the strongest boundary inside it, again and again. Whether and where a
range is cut depends on nothing outside of it, so an edit changes the ranges around it and leaves the others, hence
their chunks and vectors, as they are. Among equally strong boundaries, those near the ends left out, the one with the
least hash of its line is taken: content-defined chunking (Muthitacharoen, Chen, Mazieres 2001), so that an edit in a
long list seldom moves a cut.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.chunking.limits import Limits
from memoryd.domain.markdown.structure import Strength

# Enough to tell lines apart; what is added to the end of a line leaves its hash as it is.
_HASHED_CHARS = 40

Range = tuple[int, int]
"""Units from the first to before the second."""


@dataclass(frozen=True, slots=True)
class Units:
    """The lines of a file that are not blank, in order.

    Attributes:
        lines: their 0-based numbers in the file.
        strengths: how good a cut before each is.
        tokens: running total before each unit, and at the end: one more than units.
        starts: where each begins, in characters of the file with line ends of one character.
        ends: where each ends.
        hashes: of the beginning of each unit's text.
    """

    lines: NDArray[np.int64]
    strengths: NDArray[np.int64]
    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    hashes: NDArray[np.int64]

    @classmethod
    def of(cls, lines: Sequence[str], numbers: Sequence[int], tokens: Sequence[int], strengths: Sequence[int]) -> Units:
        """Take the units `numbers` of a file: `tokens` one a unit, `lines` and `strengths` one a line of the file."""
        offsets = np.cumsum([0, *(len(line) + 1 for line in lines)], dtype=np.int64)
        chosen = np.array(numbers, dtype=np.int64)
        return cls(
            lines=chosen,
            strengths=np.array(strengths, dtype=np.int64)[chosen],
            tokens=np.cumsum([0, *tokens], dtype=np.int64),
            starts=offsets[chosen],
            ends=offsets[chosen + 1] - 1,
            hashes=np.array(
                [zlib.crc32(lines[number][:_HASHED_CHARS].encode(errors="replace")) for number in numbers],
                dtype=np.int64,
            ),
        )

    def size(self, first: int, end: int) -> int:
        """Tokens of a range."""
        return int(self.tokens[end] - self.tokens[first])

    def chars(self, first: int, end: int) -> int:
        """Characters of a range, blank lines inside it included."""
        return int(self.ends[end - 1] - self.starts[first])


class Splitter:
    """Cuts the units of one file."""

    def __init__(self, units: Units, limits: Limits, overhead: int) -> None:
        """Take what prompt and special tokens need of the window as `overhead`."""
        self._units = units
        self._limits = limits
        self._hard = max(limits.max_tokens - overhead - limits.breadcrumb_tokens, 1)

    @property
    def part_tokens(self) -> int:
        """Tokens of a part of a line that is too long."""
        return min(self._limits.target_tokens, self._hard)

    def split(self, whole: Range) -> list[Range]:
        """Cut a range into ranges that fit, in order; one of a single unit may not."""
        done: list[Range] = []
        todo = [whole]
        while todo:
            first, end = todo.pop()
            if end - first <= 1 or self._fits(first, end):
                done.append((first, end))
            else:
                cut = self.cut(first, end)
                todo += [(cut, end), (first, cut)]
        return self._merged(done)

    def single_fits(self, unit: int) -> bool:
        """Whether a line is short enough to be a piece."""
        return self._within(unit, unit + 1, self._hard)

    def cut(self, first: int, end: int) -> int:
        """Choose the boundary at which to cut a range of two units or more."""
        units = self._units
        strengths = units.strengths[first + 1 : end]
        candidates = np.flatnonzero(strengths == strengths.max()) + first + 1
        before = units.tokens[candidates] - units.tokens[first]
        after = units.tokens[end] - units.tokens[candidates]
        least = min(self._budget(first, end), units.size(first, end)) / 3
        inner = (before >= least) & (after >= least)
        if inner.any():
            hashes = np.where(inner, units.hashes[candidates], np.iinfo(np.int64).max)
            inner = hashes == hashes.min()
        else:
            inner[:] = True
        # Of equal lines the middle one: the ranges of a hostile file shrink fast, too.
        return int(candidates[np.argmin(np.where(inner, np.abs(before - after), np.iinfo(np.int64).max))])

    def _fits(self, first: int, end: int) -> bool:
        return self._within(first, end, self._budget(first, end))

    def _budget(self, first: int, end: int) -> int:
        single_block = self._units.strengths[first + 1 : end].max() < Strength.NESTED_BLOCK
        return self._hard if single_block else min(self._limits.target_tokens, self._hard)

    def _within(self, first: int, end: int, budget: int) -> bool:
        return self._units.size(first, end) <= budget and self._units.chars(first, end) <= self._limits.max_chars

    def _merged(self, ranges: Sequence[Range]) -> list[Range]:
        """Join scraps, such as the sentence before a large table, with a neighbour of their section."""
        scrap = self._limits.target_tokens // 8
        merged: list[Range] = []
        for first, end in ranges:
            if merged and self._units.strengths[first] < Strength.SUBHEADING:
                before = merged[-1][0]
                smaller = min(self._units.size(before, first), self._units.size(first, end))
                if smaller < scrap and self._within(before, end, self._hard):
                    merged[-1] = (before, end)
                    continue
            merged.append((first, end))
        return merged
