"""A gateway on fakes behind its ports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from memoryd.domain.files import Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.queries import Mode, ModelInfo, SearchAnswer, SearchQuery, SearchResult, Stage
from memoryd.errors import UnavailableError
from memoryd.ports import (
    Embeddings,
    FolderState,
    IndexStatus,
    Lane,
    PartProbe,
    Principal,
    TextKind,
    Tokenizer,
    WorkspaceFile,
)
from services.gateway.service import GatewayService
from services.gateway.settings import GatewaySettings
from tests.support.fake_generations import MemoryGenerations

SCOPE = Scope("acme", "main")
MODEL = ModelInfo("tiny", "f00d", 4, 128, unrelated=0.7, related=0.9, engine="onnx")
RESULT = SearchResult(
    path="memory/2026-03-05.md",
    start_line=5,
    end_line=9,
    score=0.75,
    vector_score=0.5,
    text_score=None,
    rerank_score=None,
    snippet="the boiler was replaced",
    source=Source.MEMORY,
    citation="memory/2026-03-05.md#L5-L9",
    file_hash="ab" * 32,
    heading="House > Boiler",
    revision=Revision(1, 17),
    explanation=("score: 0.750",),
)
ANSWER = SearchAnswer(
    results=(RESULT,),
    mode=Mode.HYBRID,
    model=MODEL,
    citations=True,
    pending=0,
    degraded=(),
    timings={Stage.EMBED: 2.5, Stage.FUSE: 0.5},
    revision="2a",
)


@dataclass
class FakeSearcher:
    """Answers the same, or raises, and remembers what it was asked."""

    answer: SearchAnswer = ANSWER
    error: Exception | None = None
    asked: list[tuple[Scope, SearchQuery, float]] = field(default_factory=list)

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        self.asked.append((scope, query, timeout))
        if self.error:
            raise self.error
        return self.answer


@dataclass
class FakeIndexing:
    """Reports what the test put in."""

    statuses: dict[Scope, IndexStatus] = field(default_factory=dict)
    synced: list[tuple[Scope, float]] = field(default_factory=list)
    probes: Sequence[PartProbe] = ()
    unreachable: bool = False

    async def status(self, scope: Scope) -> IndexStatus:
        return self.statuses.get(scope, IndexStatus(scope, 0, 0, 0, (), "0"))

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        self.synced.append((scope, timeout))
        return 3, 1

    async def disk_bytes(self) -> int:
        return 4096

    async def probe(self, scope: Scope, timeout: float) -> Sequence[PartProbe]:
        if self.unreachable:
            raise UnavailableError("the indexer at 10.0.0.7:7420 does not answer")
        return self.probes


@dataclass
class FakeWorkspace:
    """Files in memory."""

    files: dict[tuple[Scope, str], WorkspaceFile] = field(default_factory=dict)
    problems: dict[Scope, Problem] = field(default_factory=dict)

    def put(self, path: str, text: str, *, scope: Scope = SCOPE, private: bool = False) -> str:
        """Add a file; its hash."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.files[scope, path] = WorkspaceFile(text, digest, private)
        return digest

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        return self.files.get((scope, path))

    async def state(self, scope: Scope) -> FolderState:
        return FolderState(self.problems.get(scope), 7.5)

    async def sync(self, scope: Scope, timeout: float) -> int:
        raise NotImplementedError


@dataclass
class FakeEmbedder:
    """A model that can be described only; down where there is no `model`."""

    model: ModelInfo | None = MODEL

    async def info(self) -> ModelInfo:
        if self.model is None:
            raise UnavailableError("the embedder does not answer")
        return self.model

    async def tokenizer(self) -> Tokenizer:
        raise NotImplementedError

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        raise NotImplementedError

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        raise NotImplementedError


@dataclass
class FakeKeys:
    """Keys that a test hands out."""

    principals: dict[str, Principal] = field(default_factory=dict)

    async def principal(self, key: str) -> Principal | None:
        return self.principals.get(key)

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        raise NotImplementedError

    async def revoke(self, key_id: str) -> bool:
        raise NotImplementedError

    async def revoke_all(self, tenant: str) -> int:
        raise NotImplementedError


@dataclass
class Gateway:
    """The use cases and the fakes below them."""

    searcher: FakeSearcher = field(default_factory=FakeSearcher)
    indexing: FakeIndexing = field(default_factory=FakeIndexing)
    workspace: FakeWorkspace = field(default_factory=FakeWorkspace)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    generations: MemoryGenerations = field(default_factory=MemoryGenerations)
    keys: FakeKeys = field(
        default_factory=lambda: FakeKeys(
            {
                "one-workspace": Principal("k1", "acme", frozenset({"main"})),
                "two-workspaces": Principal("k2", "acme", frozenset({"main", "side"})),
                "other-tenant": Principal("k3", "rival", frozenset({"main"})),
            }
        )
    )

    @property
    def service(self) -> GatewayService:
        return GatewayService(
            self.searcher, self.indexing, self.workspace, self.embedder, self.generations, GatewaySettings()
        )
