"""Cuts inside a line, for lines that are too long."""

from __future__ import annotations

from collections.abc import Iterator

import regex

# After the end of a sentence, else of a clause, else at white space: the last such place in the text searched.
_PLACES = [
    regex.compile(r"(?r)[。！？；]|[.!?;]\s"),
    regex.compile(r"(?r)[，、：]|[,:]\s"),
    regex.compile(r"(?r)\s"),
]
_GRAPHEME = regex.compile(r"\X")


def slices(line: str, size: int) -> Iterator[str]:
    """Cut a line into slices of at most `size` characters; joined, they are the line.

    A slice ends with a sentence where one ends in its second half, else with a clause, a word, or a grapheme cluster
    (a letter with its marks, an emoji sequence). Only a cluster longer than `size` is cut between its code points.
    """
    start = 0
    while len(line) - start > size:
        end = _place(line, start, start + size)
        yield line[start:end]
        start = end
    yield line[start:]


def halves(text: str) -> tuple[str, str]:
    """Cut a text of two characters or more near its middle, as `slices` does."""
    end = _place(text, 0, (len(text) + 1) // 2)
    return text[:end], text[end:]


def _place(line: str, start: int, limit: int) -> int:
    """Find the best place to cut in (start, limit]."""
    for pattern in _PLACES:
        match = pattern.search(line, (start + limit) // 2, limit)
        # White space or punctuation can carry a mark, too.
        if match is not None and _whole(line, match.end()):
            return match.end()
    return _grapheme_end(line, start, limit)


def _whole(line: str, end: int) -> bool:
    match = _GRAPHEME.match(line[end - 1 : end + 1])
    return match is not None and match.end() == 1


def _grapheme_end(line: str, start: int, limit: int) -> int:
    """Find the last end of a grapheme cluster in (start, limit]; `limit` where a single one is longer.

    A copy is searched: in a run of flags the pattern looks back to the beginning of its text.
    """
    last = 0
    # One character more tells whether a cluster ends at the limit.
    for match in _GRAPHEME.finditer(line[start : limit + 1]):
        if match.end() > limit - start:
            break
        last = match.end()
    return start + last if last else limit
