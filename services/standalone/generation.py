"""One generation of a standalone: its model, its engines in its own folder, and the services on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import structlog

from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.adapters.embedded.soundness import open_sound
from memoryd.adapters.embedded.text import TantivyTextStore
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from memoryd.domain.generations import Generation, consumer_name
from memoryd.domain.names import Scope
from memoryd.generations.parts import Parts
from memoryd.ports import ChunkStore, Workspace
from services.indexer.generation import Failure, IndexedGeneration, indexed
from services.indexer.kin import Kin
from services.indexer.service import Indexer
from services.search.service import SearchService
from services.standalone.models import Models
from services.standalone.settings import StandaloneSettings

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StandaloneGeneration:
    """A generation, indexed and searched."""

    parts: Parts
    indexed: IndexedGeneration
    search: SearchService


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens generations.

    Attributes:
        settings: see there.
        data: the data directory.
        log: the file log.
        models: the models.
        workspace: compares the folders with the file log.
        scopes: the workspaces.
        failure: told of an indexer that fails.
        kin: the open ones.
    """

    settings: StandaloneSettings
    data: DataDirectory
    log: SqliteFileLog
    models: Models
    workspace: Workspace
    scopes: Sequence[Scope]
    failure: Failure
    kin: Kin = field(default_factory=Kin)

    @asynccontextmanager
    async def open(self, generation: Generation) -> AsyncIterator[StandaloneGeneration]:
        """Open the engines and begin to index. What is damaged is set aside, and filled again from the file log."""
        async with AsyncExitStack() as stack:
            embedder = await self.models.embedder(generation)
            paths = self.data.generation(generation.id)
            consumer = consumer_name(self.settings.indexer.consumer, generation.id)
            _log.info("generation", id=generation.id, model=generation.model.name, engine=generation.model.engine)
            manifest = await open_sound(paths.manifest, partial(SqliteManifest.open, paths.manifest))
            stack.push_async_callback(manifest.close)
            if manifest.newest_at_open is None:
                # Nothing is indexed (its folder was deleted, say): begin with all files.
                await self.log.unsubscribe(consumer)
            dimensions = generation.model.dimensions
            vectors = await open_sound(
                paths.vectors, partial(EdgeVectorStore.open, paths.vectors, dimensions), EdgeVectorStore.check
            )
            stack.push_async_callback(vectors.close)
            texts = await open_sound(paths.text, partial(TantivyTextStore.open, paths.text), self._check)
            stack.push_async_callback(texts.close)
            parts = Parts(generation, embedder, manifest, vectors, texts, consumer)
            settings = self.settings
            search = SearchService(
                embedder=embedder,
                vectors=vectors,
                texts=texts,
                manifest=manifest,
                log=self.log,
                consumer=consumer,
                settings=settings.search,
            )
            indexer = Indexer(
                log=self.log,
                manifest=manifest,
                vectors=vectors,
                texts=texts,
                embedder=embedder,
                settings=settings.indexer.model_copy(update={"consumer": consumer}),
                workspace=self.workspace,
                forget=search.forget,
                others=stack.enter_context(self.kin.member(parts)),
            )
            running = await stack.enter_async_context(indexed(parts, indexer, self.failure, settings.grpc.drain))
            yield StandaloneGeneration(parts, running, search)

    async def _check(self, store: ChunkStore) -> None:
        """Raise DataError now where a store is damaged, rather than at the first search: some open at first use."""
        for scope in {*self.scopes, *await self.log.scopes()}:
            async for _ in store.scan(scope):
                break

    async def erase(self, generation: Generation) -> None:
        """Remove all parts of a generation that is closed."""
        await self.log.unsubscribe(consumer_name(self.settings.indexer.consumer, generation.id))
        await self.data.erase(generation.id)
        await self.models.release(generation)
