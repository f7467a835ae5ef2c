"""The engines of a deployment of many processes, as those open them that work on the indexes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

import structlog
from pydantic import Field

from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.settings import ClientSettings
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import LEASE_SECONDS, NatsFileLog
from memoryd.adapters.nats.manifest import NatsManifest
from memoryd.adapters.nats.opening import open_nats
from memoryd.adapters.nats.settings import NatsSettings
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.opensearch.store import OpenSearchTextStore
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.adapters.qdrant.store import QdrantVectorStore
from memoryd.domain.generations import consumer_name, generation_id
from memoryd.ports import Embedder, Manifest, TextStore, VectorStore
from memoryd.process.settings import ProcessSettings
from memoryd.process.waiting import until_available
from memoryd.server.credentials import ServiceCredentialSettings
from memoryd.server.lifecycle import Server

_log = structlog.get_logger(__name__)


class EngineSettings(ProcessSettings):
    """What a process has that works on the indexes."""

    nats: NatsSettings = Field(default_factory=NatsSettings)
    qdrant: QdrantSettings = Field(default_factory=QdrantSettings)
    opensearch: OpenSearchSettings = Field(default_factory=OpenSearchSettings)
    client: ClientSettings = Field(default_factory=ClientSettings)
    service: ServiceCredentialSettings = Field(default_factory=ServiceCredentialSettings)


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of one generation: the one that fits the embedder's model, so all processes agree on it unasked."""

    connection: NatsConnection
    embedder: Embedder
    generation: str
    manifest: Manifest
    log: NatsFileLog
    vectors: VectorStore
    texts: TextStore

    def consumer(self, name: str) -> str:
        """Name the file log's durable consumer of the generation."""
        return consumer_name(name, self.generation)


async def open_engines(
    settings: EngineSettings, name: str, server: Server, stack: AsyncExitStack, *, lease: float = LEASE_SECONDS
) -> Engines:
    """Open all, each as soon as it answers; the stack closes them.

    Args:
        settings: where they are.
        name: the process's, for NATS's monitoring.
        server: tells callers what is waited for.
        stack: closes what was opened.
        lease: seconds that a delivery of the file log may take.

    Raises ConfigError, DataError.
    """
    connection = await open_nats(settings.nats, name, server, stack)
    remote = Remote("embedder", settings.client, settings.service)
    stack.push_async_callback(remote.close)
    embedder = await until_available(server, remote.where, GrpcEmbedder(remote).bound)
    await until_available(server, remote.where, embedder.tokenizer)
    model = await embedder.info()
    generation = generation_id(model)
    indexes = f"{settings.namespace}-{generation}"
    _log.info("generation", id=generation, model=model.name, engine=model.engine, fingerprint=model.fingerprint)

    namespace, replicas = settings.namespace, settings.nats.replicas
    jetstream = f"NATS at {settings.nats.where}"
    manifest = await until_available(
        server, jetstream, partial(NatsManifest.open, connection, namespace, generation, replicas=replicas)
    )
    stack.push_async_callback(manifest.close)
    known = await until_available(server, jetstream, manifest.newest)
    log = await until_available(
        server,
        jetstream,
        partial(NatsFileLog.open, connection, namespace, known=known, lease=lease, replicas=replicas),
    )
    stack.push_async_callback(log.close)
    vectors = await until_available(
        server,
        f"Qdrant at {settings.qdrant.url}",
        partial(QdrantVectorStore.open, settings.qdrant, indexes, model.dimensions),
    )
    stack.push_async_callback(vectors.close)
    texts = await until_available(
        server,
        f"OpenSearch at {settings.opensearch.url}",
        partial(OpenSearchTextStore.open, settings.opensearch, indexes),
    )
    stack.push_async_callback(texts.close)
    return Engines(connection, embedder, generation, manifest, log, vectors, texts)
