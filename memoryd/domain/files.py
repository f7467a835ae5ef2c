"""States of workspace files, as the file log keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memoryd.domain.names import Scope


class Source(StrEnum):
    """Where a file belongs."""

    MEMORY = "memory"
    SESSIONS = "sessions"


@dataclass(frozen=True, slots=True, order=True)
class Revision:
    """The place of a file state in the file log; never given twice.

    The epoch grows whenever the log was recreated or may have lost its tail, so a sequence number that comes again is
    never mistaken for the earlier one. Callers see the token and compare it for equality only.
    """

    epoch: int
    sequence: int

    @property
    def token(self) -> str:
        """The opaque form that callers pass back."""
        return f"{self.epoch:x}-{self.sequence:x}"

    @classmethod
    def parse(cls, token: str) -> Revision:
        """Read a token. Raises ValueError for anything that `token` did not make."""
        epoch, dash, sequence = token.partition("-")
        revision = cls(int(epoch, 16), int(sequence, 16)) if dash else None
        if revision is None or revision.token != token:
            message = f"{token!r} is not a revision"
            raise ValueError(message)
        return revision


@dataclass(frozen=True, slots=True, order=True)
class FileKey:
    """One file of one workspace. `path` is relative, NFC, with `/` separators (see `memoryd.domain.paths`)."""

    scope: Scope
    path: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file is set aside instead of indexed.

    Attributes:
        reason: UPPER_SNAKE, for programs: TOO_LARGE, BINARY, UNREADABLE, NAME_CLASH, POISON; of a folder: ROOT_MISSING,
            ROOT_EMPTY.
        detail: for a person.
    """

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file was when its workspace last looked.

    Attributes:
        key: which file.
        hash: SHA-256 of the file's bytes, hex; empty for a deletion, and for a problem that kept it from being read.
        content: the text as bytes in UTF-8; None for a deletion or a problem.
        modified: modification time, Unix seconds.
        source: where the file belongs.
        private: withheld in chats that are not direct.
        lossy: some bytes were not UTF-8 and were decoded with replacement.
        deleted: the file is gone.
        problem: why the file can't be indexed as it is.
        evergreen: False where its folder's settings say that it decays whatever its path says.
    """

    key: FileKey
    hash: str
    content: bytes | None
    modified: float
    source: Source = Source.MEMORY
    private: bool = False
    lossy: bool = False
    deleted: bool = False
    problem: Problem | None = None
    evergreen: bool = True

    @classmethod
    def deletion(cls, key: FileKey, modified: float) -> FileState:
        """Make the state of a file that is gone."""
        return cls(key=key, hash="", content=None, modified=modified, deleted=True)

    def same_as(self, other: FileState) -> bool:
        """Whether indexing `other` would change nothing: the modification time alone does not count."""
        return self._identity() == other._identity()

    def _identity(self) -> tuple[object, ...]:
        return (self.key, self.hash, self.deleted, self.source, self.private, self.lossy, self.problem, self.evergreen)


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file state with the revision under which the file log keeps it.

    In listings `state.content` is None whatever the file holds: ask for one file to get its content.
    """

    state: FileState
    revision: Revision
