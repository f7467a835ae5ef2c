"""The ports: what the use cases need from the outside. `tests/contract` holds one suite a port, run on every adapter.

Every method may raise `UnavailableError` when its engine does not answer. Every call that names a scope returns and
touches nothing of another one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline, WorkspaceView
from memoryd.domain.queries import ModelInfo, SearchAnswer, SearchQuery

# --- File log ---------------------------------------------------------------------------------------------------------


class Delivery(Protocol):
    """A file state that a consumer holds under a lease until it is settled."""

    @property
    def file(self) -> LoggedFile:
        """The state, with its content."""
        ...

    @property
    def attempt(self) -> int:
        """How often this state was delivered, from 1."""
        ...

    async def ack(self) -> None:
        """Done. Without effect where a later state of the file has come."""
        ...

    async def retry(self, delay: float) -> None:
        """Deliver again after `delay` seconds."""
        ...

    async def in_progress(self) -> None:
        """Begin the lease anew: the work takes longer."""
        ...


class FileLog(Protocol):
    """The last state of every file; queue, mirror and rebuild source in one."""

    async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
        """Keep a state, if the file's last revision is still `expected` (None: never logged).

        A `live` state (somebody is editing) is delivered before others (imports, scans). The revision is greater than
        every revision given before. Raises ConflictError where `expected` is not the last one.
        """
        ...

    async def get(self, key: FileKey) -> LoggedFile | None:
        """Read the last state with its content."""
        ...

    def scan(self, scope: Scope) -> AsyncIterator[LoggedFile]:
        """Iterate over the last states of a workspace's files, deletions included, without content, by path."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have a file in the log."""
        ...

    async def subscribe(self, consumer: str) -> None:
        """Create a durable consumer that begins with the last state of every file; nothing where it exists."""
        ...

    async def fetch(self, consumer: str, *, limit: int, timeout: float) -> Sequence[Delivery]:
        """Lease up to `limit` unsettled states, live ones first; wait up to `timeout` seconds for the first.

        Only the last state of a file is ever delivered. A lease that is not settled in time is delivered again.
        """
        ...

    async def pending(self, consumer: str, scope: Scope) -> int:
        """Count the states of a workspace that the consumer has not settled."""
        ...


# --- Stores -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """What a leg may return; applied inside the store's index.

    Attributes:
        scope: the workspace.
        sources: allowed sources.
        path_prefix: paths start with it.
        since: chunks dated earlier are left out (YYYY-MM-DD, empty: no bound); chunks without a date pass, the
            outline's date decides.
        until: chunks dated later are left out, likewise.
        include_private: whether private chunks may be returned.
    """

    scope: Scope
    sources: frozenset[Source] = frozenset(Source)
    path_prefix: str = ""
    since: str = ""
    until: str = ""
    include_private: bool = True


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate: a chunk and the leg's own score (cosine, or BM25)."""

    chunk: Chunk
    score: float


@dataclass(frozen=True, slots=True)
class EmbeddedChunk:
    """A chunk with its vector, shape (dimensions,)."""

    chunk: Chunk
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of the analysed query and its weight, above 0."""

    term: str
    weight: float = 1.0


class ChunkStore(Protocol):
    """What both stores share. Bound to one generation."""

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are no error."""
        ...

    def scan(self, scope: Scope, path: str | None = None) -> AsyncIterator[Sequence[ChunkRef]]:
        """Iterate in pages over all stored chunks of a workspace, or of one file."""
        ...

    async def close(self) -> None:
        """Release the engine."""
        ...


class VectorStore(ChunkStore, Protocol):
    """Chunks with their vectors."""

    async def upsert(self, chunks: Sequence[EmbeddedChunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found."""
        ...

    async def search(self, vector: NDArray[np.float32], where: Filter, limit: int) -> Sequence[Hit]:
        """Find the nearest chunks by cosine, best first."""
        ...

    async def cosines(self, vector: NDArray[np.float32], scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        """Compare a vector with chunks that another leg found, by id. Missing ones are left out."""
        ...

    async def vectors(self, tenant: str, text_hashes: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """Find vectors of texts embedded before, within one tenant, by text hash. Missing ones are left out."""
        ...


class TextStore(ChunkStore, Protocol):
    """Chunks with their terms."""

    async def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found."""
        ...

    async def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[Hit]:
        """Rank the chunks that hold any of the terms by BM25, best first. No terms find nothing."""
        ...


# --- Manifest ---------------------------------------------------------------------------------------------------------


class Manifest(Protocol):
    """The outlines. Bound to one generation."""

    async def outline(self, key: FileKey) -> Outline | None:
        """Read a file's outline, fresh."""
        ...

    async def commit(self, outline: Outline) -> Outline:
        """Put an outline if the entry is still `outline.entry` (0: none); returns it with its new entry.

        Raises ConflictError where another commit came first.
        """
        ...

    async def view(self, scope: Scope) -> WorkspaceView:
        """Fix the outlines of a workspace: an immutable snapshot, current when the call began."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have an outline."""
        ...

    async def wait(self, scope: Scope, after: int, timeout: float) -> int:
        """Wait until the workspace's sequence is greater than `after`, at most `timeout` seconds; returns it."""
        ...


# --- Workspace --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file as memory_get reads it: its text, and the SHA-256 of its bytes, hex."""

    text: str
    hash: str
    private: bool


class Workspace(Protocol):
    """Reading files of workspaces. Paths have passed `memoryd.domain.paths.check_path`."""

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        """Read a file; None where it does not exist or may not be read (hidden, a link that leaves, not Markdown)."""
        ...

    async def problem(self, scope: Scope) -> Problem | None:
        """Why the workspace's folder can't be read now; None where it can."""
        ...

    async def sync(self, scope: Scope, timeout: float) -> int:
        """Compare the folder with the file log now and put what differs; returns how many states were put."""
        ...


# --- Embedder ---------------------------------------------------------------------------------------------------------


class Lane(StrEnum):
    """Queues of the embedder: a query never waits behind bulk."""

    QUERY = "query"
    BULK = "bulk"


class TextKind(StrEnum):
    """What a text is: it decides the prompt."""

    QUERY = "query"
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors, float32, shape (texts, dimensions), L2-normalised, in the order of the texts; tokens embedded."""

    vectors: NDArray[np.float32]
    tokens: int


class Tokenizer(Protocol):
    """The model's tokenizer, in process wherever it is needed."""

    def count(self, texts: Sequence[str], kind: TextKind = TextKind.PASSAGE) -> list[int]:
        """Tokens of each embedding input, the kind's prompt and special tokens included, however long it is."""
        ...

    def weights(self, words: Sequence[str]) -> list[float]:
        """How rare each word is: minus the sum of its pieces' unigram log-probabilities, in nats, at least 0."""
        ...


class Embedder(Protocol):
    """An embedding model, and a cross-encoder where one is configured."""

    async def info(self) -> ModelInfo:
        """Describe the model."""
        ...

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer."""
        ...

    async def embed(self, texts: Sequence[str], *, kind: TextKind, lane: Lane, timeout: float) -> Embeddings:
        """Embed texts within `timeout` seconds.

        Raises InvalidInputError (a text is longer than the window, or can't be encoded), ResourceExhaustedError (the
        queue is full), DeadlineExceededError.
        """
        ...

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query, 0 to 1 each. Raises UnimplementedError where no cross-encoder is configured."""
        ...


# --- Services as the gateway sees them --------------------------------------------------------------------------------


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
class IndexStatus:
    """What is indexed of one workspace; `pending` counts file changes that are not yet searchable."""

    scope: Scope
    files: int
    chunks: int
    pending: int
    quarantined: tuple[QuarantinedFile, ...]
    revision: str


class Indexing(Protocol):
    """The indexer service."""

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending."""
        ...

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        ...


# --- Keys -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a credential belongs to.

    Attributes:
        key_id: names the key in logs; not a secret.
        tenant: the tenant.
        workspaces: the workspaces that the key covers.
    """

    key_id: str
    tenant: str
    workspaces: frozenset[str]


class KeyStore(Protocol):
    """API keys; only their hashes are kept."""

    async def principal(self, key: str) -> Principal | None:
        """Find who a key belongs to; None where it is not known."""
        ...

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """Mint a key, random; it is returned once and never stored."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """End a key at once; whether there was one."""
        ...
