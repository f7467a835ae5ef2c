"""Services as the gateway sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryd.domain.files import Problem
from memoryd.domain.names import Scope
from memoryd.domain.queries import SearchAnswer, SearchQuery


class Searcher(Protocol):
    """The search service."""

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        """Run a search within `timeout` seconds. Raises UnavailableError only when every leg failed."""
        ...


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A file whose newest state is set aside."""

    path: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class FileWarning:
    """A file that is indexed, but not as it was meant: front matter that is invalid, bytes that are not UTF-8."""

    path: str
    warning: str


@dataclass(frozen=True, slots=True)
class IndexFailure:
    """What went wrong last in an indexer.

    Attributes:
        stage: where: fetch, compose, embed, write, commit, sweep, repair, …
        reason: UPPER_SNAKE, for programs.
        detail: for the operator: it may name addresses and folders.
        at: when, Unix seconds.
        ongoing: nothing has succeeded since.
    """

    stage: str
    reason: str
    detail: str
    at: float
    ongoing: bool


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What is indexed of one workspace.

    Attributes:
        scope: the workspace.
        files: files that can be found.
        chunks: chunks that can be found.
        pending: file changes that are not yet searchable.
        quarantined: files that are set aside.
        revision: changes with every change of the index.
        lag: seconds for which the oldest pending state has been waiting by the log, whichever replica is asked; more
            where the one that is asked has seen something waiting for longer without a break.
        checked: when log, outlines and stores were last compared, Unix seconds; 0: not since this indexer started.
        failure: what went wrong last in the indexer that was asked, for whichever workspace.
        warnings: files that are indexed, but not as they were meant.
    """

    scope: Scope
    files: int
    chunks: int
    pending: int
    quarantined: tuple[QuarantinedFile, ...]
    revision: str
    lag: float = 0.0
    checked: float = 0.0
    failure: IndexFailure | None = None
    warnings: tuple[FileWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class PartProbe:
    """How a part has answered a small question.

    Attributes:
        part: its name: embedder, vector store, text store, file log, manifest.
        milliseconds: how long it took, or after how long it was given up.
        reason: why it does not work, UPPER_SNAKE, for programs; empty where it does.
        detail: the same for the operator: it may name addresses and folders.
    """

    part: str
    milliseconds: float
    reason: str = ""
    detail: str = ""


class Indexing(Protocol):
    """The indexer service."""

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending."""
        ...

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        """Compare a workspace's folders with the file log and wait until what differs is searchable.

        Returns how many file states were put, and how many are still pending when `timeout` seconds are over.
        """
        ...

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        ...

    async def probe(self, scope: Scope, timeout: float) -> Sequence[PartProbe]:
        """Ask each part something small, with data of `scope`, at most `timeout` seconds; none that fails is raised."""
        ...
