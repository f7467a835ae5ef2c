"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.domain.chunking import Chunked, Limits, chunk_markdown

OVERHEAD = 5


def count(texts: Sequence[str]) -> list[int]:
    """Stand in for a model's tokenizer: a token for two characters, and what prompt and special tokens need."""
    return [OVERHEAD + (len(text) + 1) // 2 for text in texts]


def chunk(text: str, limits: Limits | None = None) -> Chunked:
    return chunk_markdown(text, count=count, limits=limits or Limits())


def texts(text: str, limits: Limits | None = None) -> list[str]:
    return [piece.text for piece in chunk(text, limits).pieces]


def filler(name: str, lines: int) -> str:
    """Make a paragraph; a line has about 20 tokens."""
    return "\n".join(f"Line {n} about {name}, with some more words." for n in range(lines)) + "\n"
