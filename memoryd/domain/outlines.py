"""Outlines: a file's manifest record is its commit.

A chunk is visible if and only if the current outline of its file lists it. An outline is put last, by compare-and-set
on the manifest entry's own revision, so one write makes a file's new state visible in both stores at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from memoryd.domain.chunks import ChunkRef
from memoryd.domain.files import FileKey, Problem, Revision, Source


@dataclass(frozen=True, slots=True)
class Listed:
    """A chunk's place in its file.

    Attributes:
        id: the chunk.
        identity: hash of what it stores, see `chunk_identity`.
        ordinal: which of several equal pieces, from 0.
        start_line: first line, 1-based, inclusive.
        end_line: last line, inclusive.
    """

    id: str
    identity: str
    ordinal: int
    start_line: int
    end_line: int


@dataclass(frozen=True)
class Outline:
    """The committed state of one file.

    Attributes:
        key: the file.
        revision: the file revision that it shows, or that was set aside (`problem`).
        file_hash: SHA-256 of the file's bytes, hex; empty in a tombstone.
        chunks: in the order of the file; none in a tombstone.
        source: where the file belongs.
        private: withheld in chats that are not direct.
        date: YYYY-MM-DD: from the path, else the front matter, else of a transcript's last message, else the
            modification time (UTC); empty in a tombstone.
        evergreen: never decays.
        deleted: a tombstone: the file is gone, and a late writer must not revive it.
        problem: why the newest state was set aside; `chunks` are then those of the state before.
        warning: what of the file could not be used as it was meant, for a person; empty where all is well.
        entry: the manifest entry's own revision, 0 before the first commit; the base of compare-and-set.
    """

    key: FileKey
    revision: Revision
    file_hash: str
    chunks: tuple[Listed, ...]
    source: Source = Source.MEMORY
    private: bool = False
    date: str = ""
    evergreen: bool = True
    deleted: bool = False
    problem: Problem | None = None
    entry: int = 0
    warning: str = ""

    @cached_property
    def by_id(self) -> Mapping[str, Listed]:
        """The listed chunks by id."""
        return {listed.id: listed for listed in self.chunks}

    def collectable(self, chunk: ChunkRef) -> bool:
        """The sweeper's rule: born no later than this outline and not listed by it.

        Once true for an outline that has been current, it stays true for ever: an in-flight commit's births are newer
        than the outline. The grace time comes on top and is not needed for safety.
        """
        return chunk.birth <= self.revision and chunk.id not in self.by_id


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """The outlines of one workspace at one moment.

    Attributes:
        sequence: grows with every commit in the workspace; equal sequences mean equal views.
        outlines: by path, tombstones included.
    """

    sequence: int
    outlines: Mapping[str, Outline] = field(default_factory=dict)
