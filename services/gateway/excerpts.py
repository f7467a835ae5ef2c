"""Lines of a file within a budget, and where to go on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

MAX_CHARACTERS = 12_000

# A line with its end; the same ends as `memoryd.domain.markdown.lines`, which numbers the lines of chunks.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A run of lines.

    Attributes:
        text: the lines, each with its line end.
        lines: how many.
        truncated: something was left out at the end.
        next_from: the first line after these, 1-based; None where there is none or a single line was cut.
        of: how many lines there are in all.
    """

    text: str
    lines: int
    truncated: bool
    next_from: int | None
    of: int


def excerpt(text: str, first: int, limit: int) -> Excerpt:
    """Take up to `limit` whole lines from line `first`, 1-based, and at most 12,000 characters.

    A first line longer than that is cut on a code point.
    """
    of = _count(text)
    taken: list[str] = []
    left = MAX_CHARACTERS
    for match in islice(_LINE.finditer(text), first - 1, None):
        line = match[0]
        if len(taken) == limit or len(line) > left:
            if not taken:
                return Excerpt(line[:MAX_CHARACTERS], lines=1, truncated=True, next_from=None, of=of)
            return Excerpt("".join(taken), len(taken), truncated=True, next_from=first + len(taken), of=of)
        taken.append(line)
        left -= len(line)
    return Excerpt("".join(taken), len(taken), truncated=False, next_from=None, of=of)


def _count(text: str) -> int:
    ends = text.count("\n") + text.count("\r") - text.count("\r\n")
    return ends + (text != "" and text[-1] not in "\r\n")
