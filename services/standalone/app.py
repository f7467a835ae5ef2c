"""The composition root: settings → engines → adapters → services, in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.folder import FolderWorkspace
from memoryd.adapters.embedded.generations import SqliteGenerations
from memoryd.adapters.embedded.keys import SqliteKeyStore
from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.adapters.embedded.soundness import open_sound
from memoryd.domain.files import Revision
from memoryd.domain.generations import GenerationState, generation_id
from memoryd.errors import DataError
from memoryd.generations.admin import begin
from memoryd.generations.embedders import CurrentEmbedder
from memoryd.generations.live import Live
from memoryd.generations.parts import Parts
from memoryd.ports import Embedder, FileLog, Generations, KeyStore
from memoryd.process.background import follow
from services.gateway.service import GatewayService
from services.indexer.current import CurrentIndexing
from services.indexer.generation import Failure
from services.indexer.keeper import Keeper
from services.search.current import CurrentSearch
from services.standalone.folders import refuse_absent
from services.standalone.generation import Opener, StandaloneGeneration
from services.standalone.models import open_models
from services.standalone.settings import StandaloneSettings
from services.workspace.service import WorkspaceService


@dataclass(frozen=True, slots=True)
class Standalone:
    """All services, running; `configured` is the generation of the configured model."""

    settings: StandaloneSettings
    log: FileLog
    generations: Generations
    live: Live[StandaloneGeneration]
    workspaces: WorkspaceService
    indexer: CurrentIndexing[StandaloneGeneration]
    search: CurrentSearch[StandaloneGeneration]
    gateway: GatewayService
    keys: KeyStore
    configured: str

    @property
    def parts(self) -> Parts:
        """The parts of the generation that answers now."""
        return self.live.current.parts


@asynccontextmanager
async def open_standalone(
    settings: StandaloneSettings, *, embedder: Embedder | None = None
) -> AsyncIterator[Standalone]:
    """Open the data directory and run all services on it until the context ends; nothing listens yet.

    Args:
        settings: see there.
        embedder: used instead of the one that the settings describe; the caller closes it.

    Raises ConfigError (the directory is in use, a folder never was there), DataError (damaged), ModelError (no model is
    prepared).
    """
    async with AsyncExitStack() as stack:
        data = DataDirectory.open(settings.data_dir)
        stack.callback(data.close)
        registry = await open_sound(data.registry, partial(SqliteGenerations.open, data.registry))
        stack.push_async_callback(registry.close)
        known = await _newest(data)
        open_log = partial(SqliteFileLog.open, data.filelog, known=known, lease=settings.indexer.lease)
        log = await open_sound(data.filelog, open_log)
        stack.push_async_callback(log.close)
        await refuse_absent(settings.workspaces, await log.scopes())  # before the model: it takes its time
        models = await stack.enter_async_context(open_models(settings.embedder, embedder))
        keys = await SqliteKeyStore.open(data.keys)
        stack.push_async_callback(keys.close)

        roots = {workspace.scope: workspace.path for workspace in settings.workspaces}
        rules = {workspace.scope: workspace.rules(settings.workspace.rules) for workspace in settings.workspaces}
        workspaces = WorkspaceService(roots, log, settings.workspace, rules)
        folder = FolderWorkspace(roots, rules, workspaces, log)
        failure = Failure()
        opener = Opener(settings, data, log, models, folder, tuple(roots), failure)
        for generation in (await registry.read()).generations:
            if generation.state is GenerationState.DROPPING:
                await opener.erase(generation)
                await registry.remove(generation)
        await begin(registry, models.configured, origin=models.origin)
        live = Live(registry, opener.open)
        stack.push_async_callback(live.close)
        await live.start()
        keeper = Keeper(
            registry=registry,
            live=live,
            indexed_of=lambda generation: generation.indexed,
            log=log,
            target=lambda: (models.configured, models.origin),
            erase=opener.erase,
            # No other process has a generation open that is closed here.
            settings=settings.generations.model_copy(update={"drop_grace": 0.0}),
            restarted=True,
        )
        for work in (live.run(), keeper.run()):
            follow(work, stack)
        stack.push_async_callback(workspaces.close)
        await workspaces.start()
        indexer = CurrentIndexing(live, lambda generation: generation.indexed, failure, keys, data.disk_bytes)
        search = CurrentSearch(live, lambda generation: generation.search)
        gateway = GatewayService(
            searcher=search,
            indexing=indexer,
            workspace=folder,
            embedder=CurrentEmbedder(live, lambda generation: generation.parts.embedder),
            generations=registry,
            settings=settings.gateway,
        )
        configured = generation_id(models.configured)
        yield Standalone(settings, log, registry, live, workspaces, indexer, search, gateway, keys, configured)


async def _newest(data: DataDirectory) -> Revision | None:
    """Find the newest revision that any generation's manifest holds: the file log must not give it again."""
    newest: Revision | None = None
    for name in data.generations():
        with suppress(DataError):  # which is raised where this generation is opened
            manifest = await SqliteManifest.open(data.generation(name).manifest)
            await manifest.close()
            if manifest.newest_at_open is not None:
                newest = max(newest or manifest.newest_at_open, manifest.newest_at_open)
    return newest
