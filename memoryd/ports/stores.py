"""The vector store and the text store: chunks, found by meaning and by words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.files import Source
from memoryd.domain.names import Scope


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
        tags: chunks carry all of them, each in the form of `memoryd.domain.tags.normal_tag`.
        paths: paths are among them; None: any. This is how a glob comes to the stores: engines know no globs.
        ids: chunks are among them; None: any. This is how the outlines come to the stores where much that they don't
            list would be found first.
    """

    scope: Scope
    sources: frozenset[Source] = frozenset(Source)
    path_prefix: str = ""
    since: str = ""
    until: str = ""
    include_private: bool = True
    tags: frozenset[str] = frozenset()
    paths: frozenset[str] | None = None
    ids: frozenset[str] | None = None


class Hit(NamedTuple):
    """A candidate: a chunk and the leg's own score (cosine, or BM25)."""

    chunk: Chunk
    score: float


@dataclass(frozen=True, slots=True)
class Nearest:
    """What a query's vector was compared with, by id.

    Attributes:
        hits: the nearest chunks and their cosines, best first.
        cosines: of the other chunks that were named; None where the store does not hold one.
    """

    hits: Sequence[tuple[str, float]]
    cosines: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Embedding:
    """What a text was turned into: its vector, shape (dimensions,), and its token sketch, empty where it has none."""

    vector: NDArray[np.float32]
    sketch: bytes = b""


@dataclass(frozen=True, slots=True)
class EmbeddedChunk:
    """A chunk with its vector, shape (dimensions,), and its token sketch, empty where it has none."""

    chunk: Chunk
    vector: NDArray[np.float32]
    sketch: bytes = b""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of the analysed query and its weight, above 0."""

    term: str
    weight: float = 1.0


class ChunkStore(Protocol):
    """What both stores share. Bound to one generation."""

    async def ensure(self) -> None:
        """Make again what the engine has lost of the store (a collection, an index), empty; nothing where all is there.

        Calls raise UnavailableError with the reason STORE_LOST until then: else nobody would know that chunks are
        missing.
        """
        ...

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are no error."""
        ...

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Read chunks by id; those that are not there are left out."""
        ...

    def scan(
        self, scope: Scope, path: str | None = None, *, known: Container[str] | None = None
    ) -> AsyncIterator[Sequence[ChunkRef]]:
        """Iterate in pages over all stored chunks of a workspace, or of one file.

        Of chunks whose ids are `known`, nothing but the id need be read: their path and birth may be empty.
        """
        ...

    async def close(self) -> None:
        """Release the engine."""
        ...


class VectorStore(ChunkStore, Protocol):
    """Chunks with their vectors."""

    async def upsert(self, chunks: Sequence[EmbeddedChunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found."""
        ...

    async def nearest(self, vector: NDArray[np.float32], where: Filter, limit: int, ids: Sequence[str]) -> Nearest:
        """Find the nearest chunks by cosine, best first, and compare those named, too; reads no chunk."""
        ...

    async def cosines(self, vector: NDArray[np.float32], scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        """Compare a vector with chunks that another leg found, by id. Missing ones are left out."""
        ...

    async def sketches(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, bytes]:
        """Read chunks' token sketches by id; chunks that have none, or are not there, are left out."""
        ...

    async def embeddings(self, tenant: str, text_hashes: Sequence[str]) -> Mapping[str, Embedding]:
        """Find what texts were turned into before, within one tenant, by text hash. Missing ones are left out."""
        ...

    async def count(self) -> int:
        """Count the stored chunks of all scopes, about; those are included that no outline lists."""
        ...


class TextStore(ChunkStore, Protocol):
    """Chunks with their terms."""

    async def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found."""
        ...

    async def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[tuple[str, float]]:
        """Rank the chunks that hold any of the terms by BM25: ids and scores, best first. No terms find nothing.

        Equal ones are in the order of their paths and ids.
        """
        ...
