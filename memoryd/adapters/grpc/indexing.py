"""The indexer over gRPC."""

from __future__ import annotations

from memoryd.adapters.grpc.remote import Remote
from memoryd.domain.names import Scope
from memoryd.ports import Indexing, IndexStatus
from memoryd.v1 import indexer_pb2, indexer_pb2_grpc
from memoryd.wire.statuses import status_from


class GrpcIndexing(Indexing):
    """A client of `IndexerService`."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._stub = indexer_pb2_grpc.IndexerServiceStub(remote.channel)

    async def status(self, scope: Scope) -> IndexStatus:
        """Report what is indexed and what is pending."""
        request = indexer_pb2.IndexerServiceStatusRequest(tenant=scope.tenant, workspace=scope.workspace)
        response = await self._remote.call(self._stub.Status, request)
        return status_from(response.status, scope)

    async def disk_bytes(self) -> int:
        """Bytes that the indexes use; 0 where unknown."""
        return (await self._remote.call(self._stub.Status, indexer_pb2.IndexerServiceStatusRequest())).disk_bytes
