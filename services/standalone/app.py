"""The composition root: settings → engines → adapters → services, in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass

import structlog

from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.folder import FolderWorkspace
from memoryd.adapters.embedded.keys import SqliteKeyStore
from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.adapters.embedded.text import TantivyTextStore
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from memoryd.domain.generations import consumer_name, generation_id
from memoryd.domain.names import Scope
from memoryd.ports import ChunkStore, Embedder, KeyStore
from services.embedder.compose import open_embedder
from services.gateway.service import GatewayService
from services.indexer.service import Indexer
from services.search.service import SearchService
from services.standalone.settings import StandaloneSettings
from services.workspace.service import WorkspaceService

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Standalone:
    """All services, running."""

    settings: StandaloneSettings
    embedder: Embedder
    workspaces: WorkspaceService
    indexer: Indexer
    search: SearchService
    gateway: GatewayService
    keys: KeyStore


@asynccontextmanager
async def open_standalone(
    settings: StandaloneSettings, *, embedder: Embedder | None = None
) -> AsyncIterator[Standalone]:
    """Open the data directory and run all services on it until the context ends; nothing listens yet.

    Args:
        settings: see there.
        embedder: used instead of the one that the settings describe; the caller closes it.

    Raises ConfigError (the directory is in use), DataError (damaged), ModelError (no model is prepared).
    """
    async with AsyncExitStack() as stack:
        data = DataDirectory.open(settings.data_dir)
        stack.callback(data.close)
        source: AbstractAsyncContextManager[Embedder] = (
            nullcontext(embedder) if embedder else open_embedder(settings.embedder)
        )
        encoder = await stack.enter_async_context(source)
        model = await encoder.info()
        generation = generation_id(model)
        paths = data.generation(generation)
        consumer = consumer_name(settings.indexer.consumer, generation)
        _log.info("generation", id=generation, model=model.name, engine=model.engine, data_dir=str(settings.data_dir))

        manifest = await SqliteManifest.open(paths.manifest)
        stack.push_async_callback(manifest.close)
        log = await SqliteFileLog.open(data.filelog, known=manifest.newest_at_open, lease=settings.indexer.lease)
        stack.push_async_callback(log.close)
        if manifest.newest_at_open is None:
            await log.unsubscribe(consumer)  # nothing is indexed (its folder was deleted, say): begin with all files
        keys = await SqliteKeyStore.open(data.keys)
        stack.push_async_callback(keys.close)
        vectors = await EdgeVectorStore.open(paths.vectors, model.dimensions)
        stack.push_async_callback(vectors.close)
        texts = await TantivyTextStore.open(paths.text)
        stack.push_async_callback(texts.close)

        roots = {workspace.scope: workspace.path for workspace in settings.workspaces}
        for scope in roots:
            await _check(texts, scope)
        rules = {workspace.scope: workspace.rules(settings.workspace.rules) for workspace in settings.workspaces}
        workspaces = WorkspaceService(roots, log, settings.workspace, rules)
        folder = FolderWorkspace(roots, rules, workspaces)
        indexer = Indexer(
            log=log,
            manifest=manifest,
            vectors=vectors,
            texts=texts,
            embedder=encoder,
            settings=settings.indexer.model_copy(update={"consumer": consumer}),
            workspace=folder,
            disk_bytes=data.disk_bytes,
        )
        await indexer.start()
        stack.push_async_callback(indexer.stop, settings.grpc.drain)
        stack.push_async_callback(workspaces.close)
        await workspaces.start()
        search = SearchService(
            embedder=encoder,
            vectors=vectors,
            texts=texts,
            manifest=manifest,
            log=log,
            consumer=consumer,
            settings=settings.search,
        )
        gateway = GatewayService(
            searcher=search, indexing=indexer, workspace=folder, embedder=encoder, settings=settings.gateway
        )
        yield Standalone(settings, encoder, workspaces, indexer, search, gateway, keys)


async def _check(store: ChunkStore, scope: Scope) -> None:
    """Raise DataError now where a store is damaged, rather than at the first search: some open at first use."""
    async for _ in store.scan(scope, path=""):
        pass
