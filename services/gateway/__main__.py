"""The gateway as a process: `python -m services.gateway`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from pydantic import Field

from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.indexing import GrpcIndexing
from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.searcher import GrpcSearcher
from memoryd.adapters.grpc.settings import ClientSettings
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.generations import NatsGenerations
from memoryd.adapters.nats.keys import NatsKeyStore
from memoryd.adapters.nats.opening import open_nats
from memoryd.adapters.nats.settings import NatsSettings
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.process.run import run
from memoryd.process.settings import ProcessSettings
from memoryd.process.waiting import until_available
from memoryd.server.credentials import ServiceCredentialSettings
from memoryd.server.lifecycle import Server
from services.gateway.keys import RememberingKeys
from services.gateway.rpc import SERVICE, add_to
from services.gateway.service import GatewayService
from services.gateway.settings import GatewaySettings


class Settings(ProcessSettings):
    """Settings of the process."""

    nats: NatsSettings = Field(default_factory=NatsSettings)
    client: ClientSettings = Field(default_factory=ClientSettings)
    service: ServiceCredentialSettings = Field(default_factory=ServiceCredentialSettings)
    gateway: GatewaySettings = Field(default_factory=GatewaySettings)


async def serve(settings: Settings) -> None:
    """Connect, then serve as soon as searches are answered: without the other services it does what it can."""
    async with Server(settings.grpc, coming=[SERVICE]) as server, AsyncExitStack() as stack:
        search, indexer, embedder = (
            Remote(name, settings.client, settings.service) for name in ("search", "indexer", "embedder")
        )
        for remote in (search, indexer, embedder):
            stack.push_async_callback(remote.close)
        connection = await open_nats(settings.nats, "gateway", server, stack)
        namespace, replicas = settings.namespace, settings.nats.replicas
        jetstream = f"NATS at {settings.nats.where}"
        log = await until_available(
            server, jetstream, partial(NatsFileLog.open, connection, namespace, replicas=replicas)
        )
        stack.push_async_callback(log.close)
        keys = await until_available(
            server, jetstream, partial(NatsKeyStore.open, connection, namespace, replicas=replicas)
        )
        generations = await until_available(
            server, jetstream, partial(NatsGenerations.open, connection, namespace, replicas=replicas)
        )
        stack.push_async_callback(generations.close)
        await until_available(server, search.where, search.ready)
        gateway = GatewayService(
            searcher=GrpcSearcher(search),
            indexing=GrpcIndexing(indexer),
            workspace=NatsWorkspace(connection, namespace, log),
            embedder=GrpcEmbedder(embedder),
            generations=generations,
            settings=settings.gateway,
        )
        add_to(server, gateway, RememberingKeys(keys, settings.gateway))
        stack.push_async_callback(server.drain)
        await server.serve()


if __name__ == "__main__":
    run("gateway", Settings, serve)
