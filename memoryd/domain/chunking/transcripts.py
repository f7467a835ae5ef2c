"""From a rendered transcript to its pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memoryd.domain.chunking.chunker import Chunked, chunk_markdown
from memoryd.domain.chunking.limits import Count, Limits
from memoryd.domain.chunks import Piece
from memoryd.domain.markdown.front_matter import FrontMatter
from memoryd.domain.markdown.lines import split_lines
from memoryd.domain.sessions.transcripts import read_line


def chunk_transcript(text: str, *, count: Count, limits: Limits = Limits()) -> Chunked:  # noqa: B008  (immutable)
    """Cut a transcript at messages and between days, so that each piece has one date; a piece's text has no times."""
    pieces: list[Piece] = []
    for date, first, lines in _days(split_lines(text)):
        cut = chunk_markdown("\n".join(lines), count=count, limits=limits).pieces
        pieces += [_moved(piece, first, date) for piece in cut]
    return Chunked(tuple(pieces), FrontMatter())


def _days(lines: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Group lines by day: the day, the number of the first line (0-based), the lines without times.

    A line without a time is of the same day as the one before.
    """
    day, first = "", 0
    group: list[str] = []
    for number, line in enumerate(lines):
        date, rest = read_line(line)
        if date and date != day and group:
            yield day, first, group
            first, group = number, []
        day = date or day
        group.append(rest)
    if group:
        yield day, first, group


def _moved(piece: Piece, lines: int, date: str) -> Piece:
    return replace(piece, start_line=piece.start_line + lines, end_line=piece.end_line + lines, date=date)
