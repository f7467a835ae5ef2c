"""What the server answers, as plain values under the contract's names; the fields' meanings are in memory.proto."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """The embedding model behind an answer."""

    name: str
    fingerprint: str
    dimensions: int
    window: int
    engine: str
    provider: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A chunk that answers. Lines are 1-based and inclusive; a score is None where that part did not run."""

    path: str
    start_line: int
    end_line: int
    score: float
    vector_score: float | None
    text_score: float | None
    rerank_score: float | None
    snippet: str
    source: str
    citation: str
    file_hash: str
    heading: str
    revision: str
    explanation: tuple[str, ...]
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Degraded:
    """A stage that did not do what was asked of it: why, and what was done instead."""

    stage: str
    reason: str
    detail: str
    instead: str


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A file that is not indexed in its current state."""

    path: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class SearchReply:
    """The output of memory_search; `timings` are milliseconds by stage.

    `set_aside` is the file that `freshness` waited for, where its state is not indexed, nor will be.
    """

    results: tuple[SearchResult, ...]
    mode: str
    provider: str
    model: Model | None
    fallback: bool
    citations: bool
    stale: bool
    pending: int
    degraded: tuple[Degraded, ...]
    timings: dict[str, float]
    revision: str
    set_aside: QuarantinedFile | None = None


@dataclass(frozen=True, slots=True)
class SyncReply:
    """What a sync found: file changes, and those that are not yet searchable."""

    changed: int
    pending: int


@dataclass(frozen=True, slots=True)
class GetReply:
    """The output of memory_get; `status` is "ok" or "not_found", `start` the contract's `from`.

    `total_lines` is how many lines the file has.
    """

    path: str
    text: str
    start: int
    lines: int
    truncated: bool
    next_from: int | None
    status: str
    file_hash: str
    total_lines: int


@dataclass(frozen=True, slots=True)
class FileWarning:
    """A file that is indexed, but not as it was meant."""

    path: str
    warning: str


@dataclass(frozen=True, slots=True)
class IndexFailure:
    """What went wrong last in the indexer, when (Unix seconds), and whether nothing has succeeded since."""

    stage: str
    reason: str
    at: float
    ongoing: bool


@dataclass(frozen=True, slots=True)
class WorkspaceStatus:
    """What is indexed of one workspace.

    Attributes:
        workspace: its name.
        files: files that can be found.
        chunks: chunks that can be found.
        pending: file changes that are not yet searchable.
        quarantined: files that are set aside.
        revision: changes with every change of the index.
        available: whether its folder can be read now.
        problem: why not.
        lag_seconds: for how long the oldest pending state has been waiting.
        checked_at: when log, outlines and stores were last compared, Unix seconds; 0: not yet.
        failure: what went wrong last in the indexer; None: nothing.
        warnings: files that are indexed, but not as they were meant.
        reconciled_at: when all files of the folder were last read and compared with the file log, Unix seconds; 0: not
            since its process started, or that can't be reached.
    """

    workspace: str
    files: int
    chunks: int
    pending: int
    quarantined: tuple[QuarantinedFile, ...]
    revision: str
    available: bool
    problem: str
    lag_seconds: float = 0.0
    checked_at: float = 0.0
    failure: IndexFailure | None = None
    warnings: tuple[FileWarning, ...] = ()
    reconciled_at: float = 0.0


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """One complete index, of all tenants.

    Attributes:
        id: its id.
        model: the model's name.
        state: "building", "ready" or "dropping".
        current: whether searches are answered from it.
        progress: the share of the files that it holds, 0 to 1.
        pending: files that it has yet to take in.
        chunks: chunks that it holds.
        eta: seconds until nothing is pending; None where that can't be told.
        problem: why it does not get on; empty where it does.
    """

    id: str
    model: str
    state: str
    current: bool
    progress: float
    pending: int
    chunks: int
    eta: float | None
    problem: str


@dataclass(frozen=True, slots=True)
class PartProbe:
    """How a part has answered a small question: after how long, and why it does not work, empty where it does."""

    part: str
    milliseconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class StatusReply:
    """The status of the caller's workspaces.

    `model` is None and `calibration` empty while the embedder does not answer; that is "own", "built-in" or "borrowed".
    """

    workspaces: tuple[WorkspaceStatus, ...]
    model: Model | None
    disk_bytes: int
    version: str
    generations: tuple[GenerationStatus, ...]
    calibration: str = ""
