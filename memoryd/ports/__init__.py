"""The ports: what the use cases need from the outside. `tests/contract` holds one suite a port, run on every adapter.

Every method may raise `UnavailableError` when its engine does not answer. Every call that names a scope returns and
touches nothing of another one.
"""

from __future__ import annotations

from memoryd.ports.embedder import Embedder, Embeddings, Lane, StreamingEmbedder, TextKind, Tokenizer
from memoryd.ports.filelog import Delivery, FileLog
from memoryd.ports.generations import Current, Generations, Registry
from memoryd.ports.keys import KeyStore, Principal
from memoryd.ports.maintenance import Maintenance
from memoryd.ports.manifest import Manifest
from memoryd.ports.services import (
    FileWarning,
    IndexFailure,
    Indexing,
    IndexStatus,
    PartProbe,
    QuarantinedFile,
    Searcher,
)
from memoryd.ports.stores import (
    ChunkStore,
    EmbeddedChunk,
    Embedding,
    Filter,
    Hit,
    Nearest,
    QueryTerm,
    TextStore,
    VectorStore,
)
from memoryd.ports.workspace import FolderState, Workspace, WorkspaceFile

__all__ = [
    "ChunkStore",
    "Current",
    "Delivery",
    "EmbeddedChunk",
    "Embedder",
    "Embedding",
    "Embeddings",
    "FileLog",
    "FileWarning",
    "Filter",
    "FolderState",
    "Generations",
    "Hit",
    "IndexFailure",
    "IndexStatus",
    "Indexing",
    "KeyStore",
    "Lane",
    "Maintenance",
    "Manifest",
    "Nearest",
    "PartProbe",
    "Principal",
    "QuarantinedFile",
    "QueryTerm",
    "Registry",
    "Searcher",
    "StreamingEmbedder",
    "TextKind",
    "TextStore",
    "Tokenizer",
    "VectorStore",
    "Workspace",
    "WorkspaceFile",
]
