"""Whether a file says of itself that it is private, read without cutting it into pieces."""

from __future__ import annotations

from memoryd.domain.markdown.front_matter import read_front_matter
from memoryd.domain.markdown.lines import split_lines
from memoryd.domain.markdown.structure import parse

# Twice what front matter may have; of a longer block the lines in it decide, see `read_front_matter`.
_HEAD_CHARS = 65_536


def says_private(text: str) -> bool:
    """Whether a file's front matter makes it private, by the same rules as the chunker's."""
    if not text.removeprefix("\ufeff").startswith("---"):
        return False
    head = split_lines(text[:_HEAD_CHARS])
    length = parse(head, front_matter=True).front_matter
    front_matter = read_front_matter(head[:length]) if length else None
    return bool(front_matter and front_matter.private)
