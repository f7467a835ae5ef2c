"""The indexer over gRPC, as the gateway and as an operator see it."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.adapters.grpc.remote import Remote
from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgeOrder, PurgeReceipt
from memoryd.domain.repairs import Checkup
from memoryd.ports import IndexStatus, Maintenance, PartProbe
from memoryd.v1 import indexer_pb2, indexer_pb2_grpc, maintenance_pb2
from memoryd.wire.maintenance import checkup_from, receipt_from
from memoryd.wire.statuses import probe_from, status_from


class GrpcIndexing(Maintenance):
    """A client of `IndexerService`."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._stub = indexer_pb2_grpc.IndexerServiceStub(remote.channel)

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending."""
        request = indexer_pb2.IndexerServiceStatusRequest(tenant=scope.tenant, workspace=scope.workspace)
        response = await self._remote.call(self._stub.Status, request)
        return status_from(response.status, scope)

    async def sync(self, scope: Scope, timeout: float) -> tuple[int, int]:
        """Compare a workspace's folders with the file log and wait until what differs is searchable."""
        request = indexer_pb2.SyncRequest(tenant=scope.tenant, workspace=scope.workspace)
        response = await self._remote.call(self._stub.Sync, request, timeout)
        return response.changed, response.pending

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        return (await self._remote.call(self._stub.Status, indexer_pb2.IndexerServiceStatusRequest())).disk_bytes

    async def probe(self, scope: Scope, timeout: float) -> Sequence[PartProbe]:
        """Ask each part something small, at most `timeout` seconds."""
        request = indexer_pb2.ProbeRequest(tenant=scope.tenant, workspace=scope.workspace)
        response = await self._remote.call(self._stub.Probe, request, timeout)
        return [probe_from(part) for part in response.parts]

    async def workspaces(self) -> Sequence[Scope]:
        """List the workspaces that anything is known of, of all tenants."""
        response = await self._remote.call(self._stub.Workspaces, maintenance_pb2.WorkspacesRequest())
        with self._remote.reading():
            return [Scope(name.tenant, name.workspace) for name in response.workspaces]

    async def check(self, scope: Scope, *, mend: bool, timeout: float) -> Checkup:
        """Compare log, outlines and stores of a workspace, and mend what does not fit."""
        request = maintenance_pb2.CheckRequest(tenant=scope.tenant, workspace=scope.workspace, mend=mend)
        response = await self._remote.call(self._stub.Check, request, timeout)
        with self._remote.reading():
            return checkup_from(response, scope)

    async def purge(self, order: PurgeOrder, *, timeout: float) -> PurgeReceipt:
        """Remove for good, as far as that can be done in time; to be repeated until it is verified."""
        request = maintenance_pb2.PurgeRequest(
            tenant=order.tenant, workspace=order.workspace, path=order.path, block=order.block
        )
        response = await self._remote.call(self._stub.Purge, request, timeout)
        with self._remote.reading():
            return receipt_from(response, order.tenant)

    async def unblock(self, key: FileKey, *, timeout: float) -> bool:
        """Take a file off the block list; whether it was on it."""
        request = maintenance_pb2.UnblockRequest(tenant=key.scope.tenant, workspace=key.scope.workspace, path=key.path)
        return (await self._remote.call(self._stub.Unblock, request, timeout)).unblocked
