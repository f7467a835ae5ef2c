"""Globs over the paths of workspace files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache


class Glob:
    """A glob: `*`, `?` and `[…]` stay within a segment, a segment `**` stands for any number of segments.

    Matching takes at most the product of the segments of both, whatever they are: it goes through the path once, with
    all places of the glob at which it may be.
    """

    def __init__(self, text: str) -> None:
        self._steps = [None if part == "**" else re.compile(translate(part)) for part in text.split("/")]
        self._start = self._reached([0])

    def matches(self, path: str) -> bool:
        """Whether it matches the whole path."""
        places = self._start
        for part in path.split("/"):
            places = self._reached(after for place in places for after in self._after(place, part))
        return len(self._steps) in places

    def _after(self, place: int, part: str) -> tuple[int, ...]:
        if place == len(self._steps):
            return ()
        step = self._steps[place]
        if step is None:
            return (place,)
        return (place + 1,) if step.match(part) else ()

    def _reached(self, places: Iterable[int]) -> set[int]:
        """Add the places that are reached by letting `**` stand for nothing."""
        reached = set()
        for place in places:
            reached.add(place)
            following = place
            while following < len(self._steps) and self._steps[following] is None:
                following += 1
                reached.add(following)
        return reached


@lru_cache(maxsize=256)
def _compiled(glob: str) -> Glob:
    return Glob(glob)


def matches_glob(path: str, glob: str) -> bool:
    """Whether a glob matches the whole path; globs of settings come again and again and are kept ready."""
    return _compiled(glob).matches(path)
