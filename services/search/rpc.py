"""SearchService: proto ↔ use case, nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import grpc

from memoryd.ports import Searcher
from memoryd.server.calls import current
from memoryd.server.interceptor import Authenticate
from memoryd.server.lifecycle import Server
from memoryd.v1 import search_pb2, search_pb2_grpc
from memoryd.wire.answers import answer_facts, answer_to
from memoryd.wire.queries import query_from
from memoryd.wire.scopes import named_scope

SERVICE = search_pb2.DESCRIPTOR.services_by_name["SearchService"].full_name
# Kept back from the deadline, so that an answer that is degraded because time ran out still arrives, in seconds.
_MARGIN = 0.03

_Context = grpc.aio.ServicerContext[Any, Any]


def add_to(server: Server, service: Searcher, authenticate: Authenticate) -> None:
    """Serve searches to the holders of the service credential."""
    register = partial(search_pb2_grpc.add_SearchServiceServicer_to_server, SearchServicer(service))
    server.add(SERVICE, register, authenticate)


class SearchServicer(search_pb2_grpc.SearchServiceServicer):
    """The search service's use case as gRPC."""

    def __init__(self, service: Searcher) -> None:
        """Take the use case."""
        self._service = service

    async def Search(self, request: search_pb2.SearchRequest, context: _Context) -> search_pb2.SearchResponse:
        """Run one search."""
        scope = named_scope(request.tenant, request.workspace)
        query = query_from(request.query)
        answer = await self._service.search(scope, query, timeout=current().within(_MARGIN))
        current().facts |= answer_facts(answer)
        return search_pb2.SearchResponse(
            answer=answer_to(answer, query),
            unrelated_cosine=answer.model.unrelated if answer.model else 0.0,
            related_cosine=answer.model.related if answer.model else 0.0,
        )
