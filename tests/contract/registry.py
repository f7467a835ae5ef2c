"""The adapters that each suite runs on. A new adapter registers itself here and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Generic, TypeVar

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.generations import SqliteGenerations
from memoryd.adapters.embedded.keys import SqliteKeyStore
from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.adapters.embedded.text import TantivyTextStore
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from memoryd.domain.names import Scope
from memoryd.folder.rules import FolderRules
from memoryd.models.spec import Variant
from memoryd.ports import (
    FileLog,
    Generations,
    KeyStore,
    Maintenance,
    Manifest,
    Searcher,
    StreamingEmbedder,
    TextStore,
    VectorStore,
    Workspace,
)
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings
from services.indexer.rpc import UseCases
from tests.contract import nats_adapters
from tests.contract.workspaces import serve_folder
from tests.servers.opensearch import open_text_store
from tests.servers.qdrant import open_vector_store
from tests.support.inner import grpc_embedder, grpc_indexing, grpc_searcher
from tests.support.model import model_dir
from tests.support.on_torch import on_torch

T = TypeVar("T")

DIMENSIONS = 8

# How an adapter is opened on a place of its own: a folder; an adapter on a server makes a namespace of its name.
# A file log also gets the seconds that a lease lasts.
FILE_LOGS: Mapping[str, Callable[[Path, float], Awaitable[FileLog]]] = {
    "sqlite": lambda place, lease: SqliteFileLog.open(place / "filelog.db", lease=lease),
    "nats": nats_adapters.file_log,
}
MANIFESTS: Mapping[str, Callable[[Path], Awaitable[Manifest]]] = {
    "sqlite": lambda place: SqliteManifest.open(place / "manifest.db"),
    "nats": nats_adapters.manifest,
}
GENERATIONS: Mapping[str, Callable[[Path], Awaitable[Generations]]] = {
    "sqlite": lambda place: SqliteGenerations.open(place / "generations.db"),
    "nats": nats_adapters.generations,
}
VECTOR_STORES: Mapping[str, Callable[[Path], Awaitable[VectorStore]]] = {
    "edge": lambda place: EdgeVectorStore.open(place / "vectors", DIMENSIONS),
    "qdrant": lambda place: open_vector_store(place, DIMENSIONS),
}
TEXT_STORES: Mapping[str, Callable[[Path], Awaitable[TextStore]]] = {
    "tantivy": lambda place: TantivyTextStore.open(place / "text"),
    "opensearch": open_text_store,
}
KEY_STORES: Mapping[str, Callable[[Path], Awaitable[KeyStore]]] = {
    "sqlite": lambda place: SqliteKeyStore.open(place / "keys.db"),
    "nats": nats_adapters.key_store,
}
# How the files of folders are served, given the folders, what of them is read, and a place for everything else.
WORKSPACES: Mapping[
    str, Callable[[Mapping[Scope, Path], FolderRules, Path], AbstractAsyncContextManager[Workspace]]
] = {"folder": serve_folder, "nats": nats_adapters.serve_folder}
# How an embedder with the default model is opened.
EMBEDDERS: Mapping[str, Callable[[], AbstractAsyncContextManager[StreamingEmbedder]]] = {
    "onnx": lambda: open_embedder(EmbedderSettings(model_dir=model_dir())),
    "grpc": lambda: grpc_embedder(open_embedder(EmbedderSettings(model_dir=model_dir()))),
    "sentence-transformers": lambda: open_embedder(on_torch(model_dir=model_dir(Variant.TORCH))),
}
# How services are reached, given what is to be reached.
SEARCHERS: Mapping[str, Callable[[Searcher], AbstractAsyncContextManager[Searcher]]] = {
    "in-process": nullcontext,
    "grpc": grpc_searcher,
}
INDEXINGS: Mapping[str, Callable[[UseCases], AbstractAsyncContextManager[Maintenance]]] = {
    "in-process": nullcontext,
    "grpc": grpc_indexing,
}


class Opened(Generic[T]):
    """An adapter that is open on its place and can be opened there again."""

    def __init__(self, adapter: Any, opener: Callable[[], Awaitable[Any]]) -> None:  # noqa: ANN401  (T, and `close`)
        self._adapter = adapter
        self._opener = opener

    @property
    def now(self) -> T:
        """The adapter."""
        adapter: T = self._adapter
        return adapter

    async def again(self) -> T:
        """Close it and open it again, as a restart does."""
        await self._adapter.close()
        self._adapter = await self._opener()
        return self.now

    async def close(self) -> None:
        """Close it for good."""
        await self._adapter.close()


@asynccontextmanager
async def opened(opener: Callable[[Path], Awaitable[T]], place: Path) -> AsyncIterator[Opened[T]]:
    """Open an adapter for one test."""
    held: Opened[T] = Opened(await opener(place), lambda: opener(place))
    try:
        yield held
    finally:
        await held.close()
