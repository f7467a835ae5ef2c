"""The search service over gRPC."""

from __future__ import annotations

from memoryd.adapters.grpc.remote import Remote
from memoryd.domain.names import Scope
from memoryd.domain.queries import SearchAnswer, SearchQuery
from memoryd.ports import Searcher
from memoryd.v1 import search_pb2, search_pb2_grpc
from memoryd.wire.answers import answer_from
from memoryd.wire.models import model_from
from memoryd.wire.queries import query_to


class GrpcSearcher(Searcher):
    """A client of `SearchService`."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._stub = search_pb2_grpc.SearchServiceStub(remote.channel)

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        """Run a search within `timeout` seconds."""
        request = search_pb2.SearchRequest(tenant=scope.tenant, workspace=scope.workspace, query=query_to(query))
        response = await self._remote.call(self._stub.Search, request, timeout)
        with self._remote.reading():
            answer, model = response.answer, None
            if answer.HasField("model"):
                model = model_from(answer.model, response.unrelated_cosine, response.related_cosine)
            return answer_from(answer, model)
