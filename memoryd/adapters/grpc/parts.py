"""Cutting many texts into requests that a server takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryd.errors import InvalidInputError
from memoryd.models.tokenizer import utf8

# What a message has beside its texts, and beside each text, at most: fields' tags and lengths, and a fingerprint.
_MESSAGE_OVERHEAD, _TEXT_OVERHEAD = 1024, 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold: texts, and bytes in all."""

    texts: int
    bytes: int

    def __post_init__(self) -> None:
        """Refuse limits that leave no room for a text."""
        if self.texts < 1 or self.bytes <= _MESSAGE_OVERHEAD:
            raise ValueError("no text fits into such a request")

    def parts(self, texts: Sequence[str], beside: str = "") -> Iterator[tuple[int, Sequence[str]]]:
        """Cut texts into parts, each with the index of its first text; a request also has the text `beside`.

        Raises InvalidInputError where one is not Unicode, or too long for any request.
        """
        room = self.bytes - _MESSAGE_OVERHEAD - len(beside.encode(errors="replace"))
        first, size = 0, 0
        for index, text in enumerate(texts):
            added = len(utf8(index, text)) + _TEXT_OVERHEAD
            if added > room:
                raise InvalidInputError(f"text {index} has {added} bytes: no model reads that much", index=str(index))
            if index - first == self.texts or size + added > room:
                yield first, texts[first:index]
                first, size = index, 0
            size += added
        if first < len(texts):
            yield first, texts[first:]
