"""Session delta: a growing transcript is taken piece by piece, not after each message."""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.folder.listing import FoundFile
from memoryd.folder.reading import count_messages


class Growth:
    """How far each transcript was when it was last taken, by inode: a renamed one is still the same.

    Args:
        most_bytes: growth after which a transcript is due.
        most_messages: the same in messages.
    """

    def __init__(self, most_bytes: int, most_messages: int) -> None:
        self._bytes, self._messages = most_bytes, most_messages
        self._taken: dict[tuple[int, int], int] = {}

    def took(self, found: FoundFile) -> None:
        """Remember a transcript as it was listed."""
        self._taken[_identity(found)] = found.signature.size

    def keep(self, listed: Iterable[FoundFile]) -> None:
        """Forget the transcripts that are gone."""
        if self._taken:
            there = set(map(_identity, listed))
            self._taken = {identity: size for identity, size in self._taken.items() if identity in there}

    def is_due(self, found: FoundFile, *, known: bool) -> bool:
        """Whether a transcript has grown enough, was cut, replaced or renamed. Blocks: it reads what is new.

        Args:
            found: as it is now.
            known: whether its path was taken before.
        """
        before = self._taken.get(_identity(found))
        if known != (before is not None):  # another file has this name now, or this file had another name
            return True
        before = before or 0
        grown = found.signature.size - before
        if not 0 < grown < self._bytes:
            return True
        return count_messages(found.root, found.name, before, grown) >= self._messages


def _identity(found: FoundFile) -> tuple[int, int]:
    return found.signature.device, found.signature.inode
