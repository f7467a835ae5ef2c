"""Lines as an editor shows them."""

from __future__ import annotations

import re

# Not str.splitlines: form feed, U+0085, U+2028 and others are characters inside a line, for editors and for memory_get.
_LINE_END = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> list[str]:
    r"""Cut a text at \n, \r\n and \r, without the line ends and without a byte order mark at the start.

    A line end at the end of the text opens no further line; an empty text has no lines.
    """
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    if not lines[-1]:
        lines.pop()
    return lines


def is_blank(line: str) -> bool:
    """Whether a line shows nothing."""
    return not line or line.isspace()
