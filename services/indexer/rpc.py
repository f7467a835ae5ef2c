"""IndexerService: proto ↔ use case, nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import grpc

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope, is_name
from memoryd.domain.paths import check_path
from memoryd.domain.purges import PurgeOrder
from memoryd.errors import refuse
from memoryd.ports import Maintenance
from memoryd.server.calls import current
from memoryd.server.interceptor import Authenticate
from memoryd.server.lifecycle import Server
from memoryd.v1 import indexer_pb2, indexer_pb2_grpc, maintenance_pb2
from memoryd.wire.maintenance import checkup_to, receipt_to
from memoryd.wire.scopes import named_scope
from memoryd.wire.statuses import probe_to, status_to

SERVICE = indexer_pb2.DESCRIPTOR.services_by_name["IndexerService"].full_name
# Kept back from the deadline, so that what was done until then is still told, in seconds.
_MARGIN = 0.2

_Context = grpc.aio.ServicerContext[Any, Any]


class UseCases(Maintenance, Protocol):
    """What is served: `services.indexer.service.Indexer`."""

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

    async def Probe(self, request: indexer_pb2.ProbeRequest, context: _Context) -> indexer_pb2.ProbeResponse:
        """Ask the parts."""
        scope = named_scope(request.tenant, request.workspace)
        parts = await self._service.probe(scope, current().within(_MARGIN))
        current().facts["failed"] = sum(bool(part.reason) for part in parts)
        return indexer_pb2.ProbeResponse(parts=map(probe_to, parts))

    async def Workspaces(
        self, request: maintenance_pb2.WorkspacesRequest, context: _Context
    ) -> maintenance_pb2.WorkspacesResponse:
        """List the workspaces."""
        scopes = await self._service.workspaces()
        return maintenance_pb2.WorkspacesResponse(
            workspaces=[
                maintenance_pb2.WorkspaceName(tenant=scope.tenant, workspace=scope.workspace) for scope in scopes
            ]
        )

    async def Check(self, request: maintenance_pb2.CheckRequest, context: _Context) -> maintenance_pb2.CheckResponse:
        """Compare and mend."""
        scope = named_scope(request.tenant, request.workspace)
        checkup = await self._service.check(scope, mend=request.mend, timeout=current().within(_MARGIN))
        current().facts["findings"] = len(checkup.findings)
        return checkup_to(checkup)

    async def Purge(self, request: maintenance_pb2.PurgeRequest, context: _Context) -> maintenance_pb2.PurgeResponse:
        """Remove for good."""
        receipt = await self._service.purge(_order(request), timeout=current().within(_MARGIN))
        current().facts |= {"files": len(receipt.files), "verified": receipt.verified}
        return receipt_to(receipt)

    async def Unblock(
        self, request: maintenance_pb2.UnblockRequest, context: _Context
    ) -> maintenance_pb2.UnblockResponse:
        """Take a file off the block list."""
        key = FileKey(named_scope(request.tenant, request.workspace), _path(request.path))
        unblocked = await self._service.unblock(key, timeout=current().within(_MARGIN))
        return maintenance_pb2.UnblockResponse(unblocked=unblocked)


def _order(request: maintenance_pb2.PurgeRequest) -> PurgeOrder:
    for field, name in (("tenant", request.tenant), ("workspace", request.workspace)):
        if not is_name(name) and (name or field == "tenant"):
            refuse(field, name, "is not a name: use 1 to 63 of a-z, 0-9 and -")
    if request.path and not request.workspace:
        refuse("workspace", "", "is empty; name the one that the path belongs to")
    if request.block and not request.path:
        refuse("path", "", "is empty; only a file can be blocked")
    path = _path(request.path) if request.path else ""
    return PurgeOrder(request.tenant, request.workspace, path, request.block)


def _path(path: str) -> str:
    try:
        return check_path(path)
    except ValueError as error:
        refuse("path", path, str(error))
