"""Cutting many texts into requests that a server takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    def parts(
        self, texts: Iterable[str], beside: str = "", target: int | None = None
    ) -> Iterator[tuple[int, list[str]]]:
        """Cut texts into parts, each with the index of its first text; a request also has the text `beside`.

        A part ends where it would be larger than `target` bytes, though a text that is larger makes one of its own.
        Texts are asked for one by one, as parts are. Raises InvalidInputError where one is not Unicode, or too long for
        any request.
        """
        room = self.bytes - _MESSAGE_OVERHEAD - len(beside.encode(errors="replace"))
        wanted = min(room, target or room)
        part: list[str] = []
        size = after = 0
        for index, text in enumerate(texts):
            added = len(utf8(index, text)) + _TEXT_OVERHEAD
            if added > room:
                raise InvalidInputError(f"text {index} has {added} bytes: no model reads that much", index=str(index))
            if part and (len(part) == self.texts or size + added > wanted):
                yield index - len(part), part
                part, size = [], 0
            part.append(text)
            size += added
            after = index + 1
        if part:
            yield after - len(part), part


def of_part(error: InvalidInputError, first: int) -> InvalidInputError:
    """Name a text by its place among all, where its part begins with text `first`."""
    index = error.details.get("index", "")
    if not first or not index.isdecimal():
        return error
    whole = InvalidInputError(f"in the part that begins with text {first}: {error}", reason=error.reason)
    whole.details.update(error.details | {"index": str(first + int(index))})
    return whole
