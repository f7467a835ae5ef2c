"""IndexerService: proto ↔ use case, nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import grpc

from memoryd.domain.names import Scope
from memoryd.ports import Indexing
from memoryd.server.calls import current
from memoryd.server.interceptor import Authenticate
from memoryd.server.lifecycle import Server
from memoryd.v1 import indexer_pb2, indexer_pb2_grpc
from memoryd.wire.scopes import named_scope
from memoryd.wire.statuses import status_to

SERVICE = indexer_pb2.DESCRIPTOR.services_by_name["IndexerService"].full_name
# Kept back from the deadline, so that what was done until then is still told, in seconds.
_MARGIN = 0.2

_Context = grpc.aio.ServicerContext[Any, Any]


class UseCases(Indexing, Protocol):
    """What is served: `services.indexer.service.Indexer`."""

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        """See the indexer."""
        ...

    async def reindex(self, scope: Scope) -> int:
        """See the indexer."""
        ...


def add_to(server: Server, service: UseCases, authenticate: Authenticate) -> None:
    """Serve the indexer to the holders of the service credential."""
    register = partial(indexer_pb2_grpc.add_IndexerServiceServicer_to_server, IndexerServicer(service))
    server.add(SERVICE, register, authenticate)


class IndexerServicer(indexer_pb2_grpc.IndexerServiceServicer):
    """The indexer's use cases as gRPC."""

    def __init__(self, service: UseCases) -> None:
        """Take the use cases."""
        self._service = service

    async def Sync(self, request: indexer_pb2.SyncRequest, context: _Context) -> indexer_pb2.SyncResponse:
        """Compare a folder with the file log, and wait."""
        scope = named_scope(request.tenant, request.workspace)
        changed, pending = await self._service.sync(scope, current().within(_MARGIN))
        current().facts |= {"changed": changed, "pending": pending}
        return indexer_pb2.SyncResponse(changed=changed, pending=pending)

    async def Reindex(self, request: indexer_pb2.ReindexRequest, context: _Context) -> indexer_pb2.ReindexResponse:
        """Queue every file again."""
        files = await self._service.reindex(named_scope(request.tenant, request.workspace))
        current().facts["files"] = files
        return indexer_pb2.ReindexResponse(files=files)

    async def Status(
        self, request: indexer_pb2.IndexerServiceStatusRequest, context: _Context
    ) -> indexer_pb2.IndexerServiceStatusResponse:
        """Report."""
        response = indexer_pb2.IndexerServiceStatusResponse(disk_bytes=await self._service.disk_bytes())
        if request.tenant or request.workspace:
            scope = named_scope(request.tenant, request.workspace)
            response.status.CopyFrom(status_to(await self._service.status(scope)))
        return response
