"""What a comparison of file log, outlines and stores can find, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memoryd.domain.names import Scope


class Defect(StrEnum):
    """What does not fit together."""

    NOT_INDEXED = "not_indexed"
    """The log holds a state that no outline shows and that no indexer is going to get."""
    CHUNKS_LOST = "chunks_lost"
    """An outline lists chunks that a store does not hold."""
    NOT_LOGGED = "not_logged"
    """An outline shows a file that the log does not know, as after the log was lost."""
    ORPHANED = "orphaned"
    """A store holds chunks of a file that neither log nor outlines know."""
    BLOCK_LOST = "block_lost"
    """An outline says that a file is blocked, and the log does not."""


class Treatment(StrEnum):
    """What was done about a defect."""

    NONE = "none"
    """Nothing: it was only looked for."""
    QUEUED = "queued"
    """The file's state was put into the log again, so it is indexed again."""
    TOMBSTONED = "tombstoned"
    """The file is gone: its deletion was put into the log, so its chunks are collected."""
    PASSED = "passed"
    """It was gone when it was to be mended: somebody else was faster."""
    LEFT = "left"
    """It can't be mended from here; the finding says what is missing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of one file.

    Attributes:
        path: the file.
        defect: what does not fit.
        vectors: listed chunks that the vector store lacks, or chunks that it holds for nobody.
        texts: the same of the text store.
        treatment: what was done.
        detail: why it was left, for a person.
    """

    path: str
    defect: Defect
    vectors: int = 0
    texts: int = 0
    treatment: Treatment = Treatment.NONE
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The comparison of one workspace.

    Attributes:
        scope: the workspace.
        files: files that the log holds, deleted ones left out.
        chunks: chunks that the outlines list.
        pending: states that were waiting to be indexed; while there are any, it is not judged what is not indexed.
        stray: chunks that no outline lists any more; the sweeper takes them when their grace time is over.
        findings: what does not fit, by path.
    """

    scope: Scope
    files: int
    chunks: int
    pending: int
    stray: int
    findings: tuple[Finding, ...] = ()

    @property
    def judged(self) -> bool:
        """Whether everything could be judged."""
        return not self.pending

    @property
    def left(self) -> tuple[Finding, ...]:
        """What could not be mended."""
        return tuple(finding for finding in self.findings if finding.treatment is Treatment.LEFT)
