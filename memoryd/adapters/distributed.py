"""The engines of a deployment of many processes, as those open them that work on the indexes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog
from pydantic import Field

from memoryd.adapters.grpc.models import ServedEmbedder, ServedModels
from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.settings import ClientSettings
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import LEASE_SECONDS, NatsFileLog
from memoryd.adapters.nats.generations import NatsGenerations
from memoryd.adapters.nats.manifest import NatsManifest
from memoryd.adapters.nats.opening import open_nats
from memoryd.adapters.nats.settings import NatsSettings
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.opensearch.store import OpenSearchTextStore, drop_indexes
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.adapters.qdrant.store import QdrantVectorStore, drop_vectors
from memoryd.domain.files import Revision
from memoryd.domain.generations import Generation, consumer_name, generation_id
from memoryd.domain.queries import ModelInfo
from memoryd.errors import MemorydError
from memoryd.generations.admin import begin
from memoryd.generations.live import Live
from memoryd.generations.parts import Parts
from memoryd.process.background import follow
from memoryd.process.settings import ProcessSettings
from memoryd.process.waiting import until_available
from memoryd.server.credentials import ServiceCredentialSettings
from memoryd.server.lifecycle import Server

P = TypeVar("P")
T = TypeVar("T")

_log = structlog.get_logger(__name__)


class EngineSettings(ProcessSettings):
    """What a process has that works on the indexes."""

    nats: NatsSettings = Field(default_factory=NatsSettings)
    qdrant: QdrantSettings = Field(default_factory=QdrantSettings)
    opensearch: OpenSearchSettings = Field(default_factory=OpenSearchSettings)
    client: ClientSettings = Field(default_factory=ClientSettings)
    service: ServiceCredentialSettings = Field(default_factory=ServiceCredentialSettings)


@dataclass(slots=True)
class Engines:
    """The engines that all generations share, and the way to open those of one.

    Attributes:
        settings: where they are.
        consumer: name that those of the generations' durable consumers begin with.
        server: tells callers what is waited for.
        connection: to NATS.
        models: the embedder deployments.
        registry: the generations.
        log: the file log.
        serving: whether the process has begun to serve: before, an engine that is away is waited for.
    """

    settings: EngineSettings
    consumer: str
    server: Server
    connection: NatsConnection
    models: ServedModels
    registry: NatsGenerations
    log: NatsFileLog
    serving: bool = False

    @asynccontextmanager
    async def open(self, generation: Generation) -> AsyncIterator[Parts]:
        """Open the parts of a generation. Raises DataError, and UnavailableError once the process serves."""
        settings, model = self.settings, generation.model
        indexes, consumer = self._indexes(generation), consumer_name(self.consumer, generation.id)
        _log.info("generation", id=generation.id, model=model.name, engine=model.engine, fingerprint=model.fingerprint)
        async with AsyncExitStack() as stack:
            replicas = settings.nats.replicas
            manifest = await self._wait(
                f"NATS at {settings.nats.where}",
                partial(NatsManifest.open, self.connection, settings.namespace, generation.id, replicas=replicas),
            )
            stack.push_async_callback(manifest.close)
            stack.push_async_callback(self.log.release, consumer)
            vectors = await self._wait(
                f"Qdrant at {settings.qdrant.url}",
                partial(QdrantVectorStore.open, settings.qdrant, indexes, model.dimensions),
            )
            stack.push_async_callback(vectors.close)
            texts = await self._wait(
                f"OpenSearch at {settings.opensearch.url}",
                partial(OpenSearchTextStore.open, settings.opensearch, indexes),
            )
            stack.push_async_callback(texts.close)
            embedder = ServedEmbedder(self.models, model)
            with suppress(MemorydError):  # it is asked for again when it is needed
                await embedder.tokenizer()  # while it can be had: words are weighed by it when the model is away
            yield Parts(generation, embedder, manifest, vectors, texts, consumer)

    async def open_current(self, stack: AsyncExitStack) -> Parts:
        """Open the generation that answers now, whichever answers later; the stack closes it."""
        known = await self.registry.read()
        current = next(each for each in known.generations if each.id == known.current.id)
        return await stack.enter_async_context(self.open(current))

    async def erase(self, generation: Generation) -> None:
        """Remove all parts of a generation that no process has open any more."""
        indexes = self._indexes(generation)
        await self.log.unsubscribe(consumer_name(self.consumer, generation.id))
        await drop_indexes(self.settings.opensearch, indexes)
        await drop_vectors(self.settings.qdrant, indexes)
        await NatsManifest.erase(self.connection, self.settings.namespace, generation.id)

    async def start(self, live: Live[P], stack: AsyncExitStack) -> None:
        """Open what is to be open, and follow the registry and the models from then on; the stack ends it."""
        stack.push_async_callback(live.close)
        await live.start()
        self.serving = True
        for work in (live.run(), self.models.run()):
            follow(work, stack)

    def _indexes(self, generation: Generation) -> str:
        return f"{self.settings.namespace}-{generation.id}"

    async def _wait(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        return await attempt() if self.serving else await until_available(self.server, what, attempt)


async def open_engines(
    settings: EngineSettings,
    name: str,
    server: Server,
    stack: AsyncExitStack,
    *,
    consumer: str,
    lease: float = LEASE_SECONDS,
) -> Engines:
    """Open what all generations share, each as soon as it answers; the stack closes it.

    Where there is no generation yet, that of the model which is served is begun, so all processes agree on it unasked.

    Args:
        settings: where the engines are.
        name: the process's, for NATS's monitoring.
        server: tells callers what is waited for.
        stack: closes what was opened.
        consumer: name that those of the generations' durable consumers begin with.
        lease: seconds that a delivery of the file log may take.

    Raises ConfigError, DataError.
    """
    connection = await open_nats(settings.nats, name, server, stack)
    remotes = [Remote("embedder", settings.client, settings.service)]
    if settings.client.next_embedder:
        remotes.append(Remote("next_embedder", settings.client, settings.service))
    for remote in remotes:
        stack.push_async_callback(remote.close)
    models = ServedModels(remotes)
    await until_available(server, models.where, models.refresh)

    namespace, replicas = settings.namespace, settings.nats.replicas
    jetstream = f"NATS at {settings.nats.where}"
    registry = await until_available(
        server, jetstream, partial(NatsGenerations.open, connection, namespace, replicas=replicas)
    )
    stack.push_async_callback(registry.close)
    while not (await until_available(server, jetstream, registry.read)).current.id:
        if (model := models.first) is not None:
            await until_available(server, jetstream, partial(begin, registry, model))
    known = await until_available(server, jetstream, partial(_newest, connection, namespace, registry, models.first))
    log = await until_available(
        server,
        jetstream,
        partial(NatsFileLog.open, connection, namespace, known=known, lease=lease, replicas=replicas),
    )
    stack.push_async_callback(log.close)
    return Engines(settings, consumer, server, connection, models, registry, log)


async def _newest(
    connection: NatsConnection, namespace: str, registry: NatsGenerations, first: ModelInfo | None
) -> Revision | None:
    """Find the newest revision that any generation's manifest holds: the file log must not give it again."""
    generations = {generation.id for generation in (await registry.read()).generations}
    newest: Revision | None = None
    for generation in generations | ({generation_id(first)} if first else set()):
        found = await NatsManifest.newest_in(connection, namespace, generation)
        if found is not None:
            newest = max(newest or found, found)
    return newest
