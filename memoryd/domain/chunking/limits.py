"""How large pieces may be, and the counting of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Count = Callable[[Sequence[str]], list[int]]
"""Tokens of each text, with the prompt and the special tokens: a model tokenizer's batch counter."""

# A character with its breadcrumb takes less.
_LEAST_TOKENS = 32
_LEAST_CHARS = 64
# A tokenizer keeps some hundred bytes a token until the call returns.
_BATCH_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of pieces.

    Attributes:
        target_tokens: neighbouring sections, paragraphs and list items are packed up to it, breadcrumb not counted; a
            single block is kept whole up to the window.
        max_tokens: the model's window: no embedding input is longer, prompt and special tokens included; at least 32.
        max_chars: no piece's text is longer; at least 64.
    """

    # nDCG@10 of vector, text and both (reciprocal ranks) with multilingual-e5-small, at 400 and at 200 tokens: memory
    # notes .555/.624/.629 and .615/.695/.706, an agent's workspace .471/.563/.549 and .535/.576/.574, product
    # documentation .701/.824/.818 and .713/.823/.819. At 150 there is a third more pieces for about the same.
    target_tokens: int = 200
    max_tokens: int = 512
    max_chars: int = 4000

    def __post_init__(self) -> None:
        """Refuse limits that can't be kept."""
        if self.max_tokens < _LEAST_TOKENS or self.max_chars < _LEAST_CHARS or self.target_tokens < 1:
            raise ValueError(f"{self} is too small: use max_tokens from {_LEAST_TOKENS}, max_chars from {_LEAST_CHARS}")

    @property
    def breadcrumb_tokens(self) -> int:
        """What a breadcrumb may take of the window."""
        return min(64, self.max_tokens // 4)


def count_all(count: Count, texts: Iterable[str]) -> list[int]:
    """Count the tokens of texts in batches of bounded size."""
    counts: list[int] = []
    batch: list[str] = []
    chars = 0
    for text in texts:
        batch.append(text)
        chars += len(text)
        if chars > _BATCH_CHARS:
            counts += count(batch)
            batch, chars = [], 0
    return counts + (count(batch) if batch else [])
