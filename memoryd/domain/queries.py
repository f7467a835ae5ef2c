"""What a search is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memoryd.domain.files import Problem, Revision, Source
from memoryd.domain.scoring import FITTED_FOR, Scoring

MAX_RESULTS = 50
DEFAULT_RESULTS = 6
DEFAULT_MIN_SCORE = 0.35
MAX_QUERY = 8000  # characters; no embedding window holds more


class Mode(StrEnum):
    """Which legs run."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    TEXT = "text"


class Rerank(StrEnum):
    """Whether the fused order is refined."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Chat(StrEnum):
    """The kind of conversation that asks."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"


class CitationMode(StrEnum):
    """Whether results carry a citation."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Stage(StrEnum):
    """A part of a search; each reports its time and can fail alone."""

    EMBED = "embed"
    VECTOR = "vector"
    TEXT = "text"
    FUSE = "fuse"
    DECAY = "decay"
    RERANK = "rerank"
    MMR = "mmr"


class TypedKind(StrEnum):
    """How a sub-query of the caller's model is searched."""

    LEX = "lex"
    VEC = "vec"
    HYDE = "hyde"


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """One sub-query."""

    kind: TypedKind
    text: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """Wait until a file's revision is visible, at most `wait` seconds."""

    path: str
    at_least: Revision
    wait: float = 2.0


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search as the contract describes it; the field's meanings, bounds and defaults are in memory.proto."""

    text: str
    max_results: int = DEFAULT_RESULTS
    min_score: float = DEFAULT_MIN_SCORE
    sources: frozenset[Source] = frozenset(Source)
    path_prefix: str = ""
    since: str = ""
    until: str = ""
    mode: Mode = Mode.HYBRID
    rerank: Rerank = Rerank.AUTO
    mmr_lambda: float | None = None
    decay_half_life_days: float | None = None
    freshness: Freshness | None = None
    explain: bool = False
    chat: Chat = Chat.DIRECT
    typed: tuple[TypedQuery, ...] = ()
    citations: CitationMode = CitationMode.AUTO
    tags: tuple[str, ...] = ()
    glob: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A chunk that answers. Lines are 1-based and inclusive; scores are 0 to 1 or None where that part did not run.

    `stale`: the file's newest state is set aside, and these lines are those of the state before.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    vector_score: float | None
    text_score: float | None
    rerank_score: float | None
    snippet: str
    source: Source
    citation: str
    file_hash: str
    heading: str
    revision: Revision
    explanation: tuple[str, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Degraded:
    """A stage that did not do what was asked of it: why, and what was done instead."""

    stage: Stage
    reason: str
    detail: str
    instead: str


class Calibrated(StrEnum):
    """Where a model's calibration comes from."""

    OWN = "own"  # `memoryd model calibrate`
    BUILT_IN = "built-in"  # what memoryd ships for this model
    BORROWED = "borrowed"  # what it ships, but for another model


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """An embedding model.

    Attributes:
        name: for people.
        fingerprint: hash over weights, tokenizer, prompts and pooling; vectors of two fingerprints are never compared.
        dimensions: length of a vector.
        window: longest embedding input in tokens, prompt and special tokens included.
        unrelated: typical cosine of unrelated texts.
        related: typical cosine of a question and its answer.
        engine: what runs it.
        provider: where it runs.
        sketches: whether it gives token sketches.
        reranks: whether a cross-encoder runs beside it.
        scoring: constants that were fitted for it; None: the committed ones. No part of the fingerprint.
    """

    name: str
    fingerprint: str
    dimensions: int
    window: int
    unrelated: float
    related: float
    engine: str
    provider: str = "local"
    sketches: bool = False
    reranks: bool = False
    scoring: Scoring | None = None

    @property
    def calibration(self) -> Calibrated:
        """Where the constants of its scores come from."""
        if self.scoring is not None:
            return Calibrated.OWN
        return Calibrated.BUILT_IN if self.name == FITTED_FOR else Calibrated.BORROWED


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer of a search.

    Attributes:
        results: best first; the first k are the results of max_results = k.
        mode: the legs that ran.
        model: the embedding model asked; None in text mode.
        citations: whether results carry citations.
        pending: file changes of the workspace that are not yet searchable.
        degraded: one entry a stage that failed, passed its deadline or was cut short.
        timings: milliseconds by stage that ran.
        revision: the state of the workspace's index: opaque, equal if and only if nothing changed in between.
        behind: the revision that the query asked for was not visible when its wait was over.
        set_aside: why the revision that the query asked for is not indexed, nor will be.
    """

    results: tuple[SearchResult, ...]
    mode: Mode
    model: ModelInfo | None
    citations: bool
    pending: int
    degraded: tuple[Degraded, ...]
    timings: dict[Stage, float]
    revision: str
    behind: bool = False
    set_aside: Problem | None = None

    @property
    def stale(self) -> bool:
        """Whether changes of the workspace, or the revision that was asked for, are not yet searchable."""
        return self.pending > 0 or self.behind or self.set_aside is not None

    def differs_from(self, query: SearchQuery) -> bool:
        """Whether something other than what was asked for was done."""
        return bool(self.degraded) or self.mode is not query.mode
