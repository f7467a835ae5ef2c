"""Snippets: the part of a chunk that is shown in a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from memoryd.domain.chunking.cutting import slices

MAX_CHARS = 700


def snippet(
    text: str, terms_of_line: Callable[[str], set[str]] | None, query_terms: AbstractSet[str], limit: int = MAX_CHARS
) -> str:
    """Choose at most `limit` characters of a chunk: all of it, else the run of lines with the most query terms.

    Lines are whole where they fit; one longer than `limit` is cut as `slices` does. Without `terms_of_line` (the terms
    of a line after analysis), and where no line has a query term, it is the beginning.
    """
    if len(text) <= limit:
        return text
    parts = _parts(text, limit)
    hits = [terms_of_line(part) & query_terms if terms_of_line and query_terms else set() for part in parts]
    first, end = _best(parts, hits, limit)
    return "".join(parts[first:end]).rstrip("\n")


def _parts(text: str, limit: int) -> list[str]:
    """Cut a text into its lines, and lines that are too long into slices; joined, they are the text."""
    parts: list[str] = []
    for line in text.split("\n"):
        # A quarter of the limit: short enough to show what stands before and after a hit.
        parts += [line] if len(line) <= limit else slices(line, max(limit // 4, 1))
        parts[-1] += "\n"
    parts[-1] = parts[-1][:-1]
    return parts


def _best(parts: Sequence[str], hits: Sequence[AbstractSet[str]], limit: int) -> tuple[int, int]:
    """Find the run within the limit with the most distinct query terms, then the most hits.

    Of equal ones it is the first of all, else the middle one, so that a hit has its context before and after it.
    """
    found: Counter[str] = Counter()
    runs: list[tuple[tuple[int, int], int, int]] = []
    end = used = 0
    for first, part in enumerate(parts):
        while end < len(parts) and used + len(parts[end].rstrip("\n")) <= limit:
            used += len(parts[end])
            found.update(hits[end])
            end += 1
        runs.append(((sum(1 for count in found.values() if count), found.total()), first, end))
        used -= len(part)
        found.subtract(hits[first])
    best = max(score for score, _, _ in runs)
    equal = [(first, end) for score, first, end in runs if score == best]
    return equal[0] if equal[0][0] == 0 else equal[len(equal) // 2]
