"""MemoryService: proto ↔ use case, nothing else."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import EnumDescriptor

from memoryd.auth import authenticate, resolve_scope
from memoryd.domain.files import Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.queries import (
    DEFAULT_MIN_SCORE,
    DEFAULT_RESULTS,
    Chat,
    CitationMode,
    Freshness,
    Mode,
    ModelInfo,
    Rerank,
    SearchQuery,
    SearchResult,
    TypedKind,
    TypedQuery,
)
from memoryd.ports import KeyStore
from memoryd.server.calls import current
from memoryd.server.lifecycle import Server
from memoryd.v1 import common_pb2, memory_pb2, memory_pb2_grpc
from services.gateway.service import DEFAULT_LINES, Content, Found, GatewayService, Read, State, WorkspaceState
from services.gateway.validation import refuse

SERVICE = memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name
_DEFAULT_WAIT_MS = 2000

_E = TypeVar("_E", bound=StrEnum)
_Context = grpc.aio.ServicerContext[Any, Any]


def add_to(server: Server, service: GatewayService, keys: KeyStore) -> None:
    """Serve the gateway to the holders of API keys."""
    register = partial(memory_pb2_grpc.add_MemoryServiceServicer_to_server, MemoryServicer(service))
    server.add(SERVICE, register, partial(authenticate, keys))


class MemoryServicer(memory_pb2_grpc.MemoryServiceServicer):
    """The gateway's use cases as gRPC."""

    def __init__(self, service: GatewayService) -> None:
        """Take the use cases."""
        self._service = service

    async def MemorySearch(
        self, request: memory_pb2.MemorySearchRequest, context: _Context
    ) -> memory_pb2.MemorySearchResponse:
        """Find chunks."""
        scope = _scope(request.workspace)
        found = await self._service.search(scope, _query(request), timeout=current().left)
        answer = found.answer
        current().facts |= {
            "results": len(answer.results),
            "mode": answer.mode.value,
            "pending": answer.pending,
            "degraded": [f"{entry.stage.value}:{entry.reason}" for entry in answer.degraded],
        }
        return _search_response(found)

    async def MemoryGet(self, request: memory_pb2.MemoryGetRequest, context: _Context) -> memory_pb2.MemoryGetResponse:
        """Read lines."""
        scope = _scope(request.workspace)
        content = await self._service.get(scope, _read(request))
        current().facts |= {"found": content.found, "lines": content.excerpt.lines}
        return _get_response(content)

    async def Status(
        self, request: memory_pb2.MemoryServiceStatusRequest, context: _Context
    ) -> memory_pb2.MemoryServiceStatusResponse:
        """Report."""
        principal = current().principal
        names = [request.workspace] if request.workspace else sorted(principal.workspaces)
        state = await self._service.status([resolve_scope(principal, name) for name in names])
        current().facts["workspaces"] = len(names)
        return _status_response(state)


def _scope(workspace: str) -> Scope:
    scope = resolve_scope(current().principal, workspace)
    current().facts["workspace"] = scope.workspace
    return scope


# --- Requests ---------------------------------------------------------------------------------------------------------


def _query(request: memory_pb2.MemorySearchRequest) -> SearchQuery:
    return SearchQuery(
        text=request.query,
        max_results=request.max_results if request.HasField("max_results") else DEFAULT_RESULTS,
        min_score=request.min_score if request.HasField("min_score") else DEFAULT_MIN_SCORE,
        sources=_sources(request.source),
        path_prefix=request.path_prefix,
        since=request.since,
        until=request.until,
        mode=_member("mode", request.mode, common_pb2.SearchMode.DESCRIPTOR, Mode.HYBRID),
        rerank=_member("rerank", request.rerank, common_pb2.RerankMode.DESCRIPTOR, Rerank.AUTO),
        mmr_lambda=request.mmr_lambda if request.HasField("mmr_lambda") else None,
        decay_half_life_days=request.decay_half_life_days if request.HasField("decay_half_life_days") else None,
        freshness=_freshness(request.freshness) if request.HasField("freshness") else None,
        explain=request.explain,
        chat=_chat(request.chat),
        typed=tuple(_typed(index, typed) for index, typed in enumerate(request.typed)),
        citations=_member("citations", request.citations, memory_pb2.Citations.DESCRIPTOR, CitationMode.AUTO),
    )


def _read(request: memory_pb2.MemoryGetRequest) -> Read:
    # `from` is a keyword of Python's: the field can be had by name only.
    return Read(
        path=request.path,
        first=getattr(request, "from") if request.HasField("from") else 1,
        lines=request.lines if request.HasField("lines") else DEFAULT_LINES,
        expected_hash=request.expected_hash,
        chat=_chat(request.chat),
    )


def _sources(number: int) -> frozenset[Source]:
    if number in {common_pb2.SOURCE_UNSPECIFIED, common_pb2.SOURCE_ALL}:
        return frozenset(Source)
    return frozenset({_member("source", number, common_pb2.Source.DESCRIPTOR, Source.MEMORY)})


def _chat(number: int) -> Chat:
    return _member("chat", number, common_pb2.Chat.DESCRIPTOR, Chat.DIRECT)


def _typed(index: int, typed: memory_pb2.TypedQuery) -> TypedQuery:
    field = f"typed[{index}].kind"
    if typed.kind == memory_pb2.TypedQuery.KIND_UNSPECIFIED:
        refuse(field, 0, "says nothing; it must be KIND_LEX, KIND_VEC or KIND_HYDE")
    return TypedQuery(_member(field, typed.kind, memory_pb2.TypedQuery.Kind.DESCRIPTOR, TypedKind.LEX), typed.text)


def _freshness(freshness: memory_pb2.Freshness) -> Freshness:
    token = freshness.at_least_revision
    try:
        revision = Revision.parse(token)
    except ValueError:
        refuse("freshness.at_least_revision", token, "is not a revision; pass one as an earlier answer gave it")
    wait_ms = freshness.wait_ms if freshness.HasField("wait_ms") else _DEFAULT_WAIT_MS
    return Freshness(freshness.path, revision, wait_ms / 1000)


def _member(field: str, number: int, descriptor: EnumDescriptor, default: _E) -> _E:
    """Find the domain's member of a proto enum's number: names agree but for the prefix, 0 is the default."""
    if number == 0:
        return default
    value = descriptor.values_by_number.get(number)
    if value is None:
        names = ", ".join(f"{known.name} ({known.number})" for known in descriptor.values if known.number)
        refuse(field, number, f"is not known; it must be one of {names}")
    return type(default)[value.name.removeprefix(_prefix(descriptor))]


def _number(member: StrEnum, descriptor: EnumDescriptor) -> Any:  # noqa: ANN401  (stubs make each enum a type)
    return descriptor.values_by_name[_prefix(descriptor) + member.name].number


def _prefix(descriptor: EnumDescriptor) -> str:
    return descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")


# --- Responses --------------------------------------------------------------------------------------------------------


def _search_response(found: Found) -> memory_pb2.MemorySearchResponse:
    answer = found.answer
    stage = common_pb2.Stage.DESCRIPTOR
    return memory_pb2.MemorySearchResponse(
        results=map(_result, answer.results),
        mode=_number(answer.mode, common_pb2.SearchMode.DESCRIPTOR),
        model=_model(answer.model) if answer.model else None,
        fallback=found.fallback,
        citations=answer.citations,
        stale=found.stale,
        pending=answer.pending,
        degraded=[
            memory_pb2.Degraded(
                stage=_number(entry.stage, stage), reason=entry.reason, detail=entry.detail, instead=entry.instead
            )
            for entry in answer.degraded
        ],
        timings=[
            memory_pb2.Timing(stage=_number(name, stage), milliseconds=milliseconds)
            for name, milliseconds in answer.timings.items()
        ],
        revision=answer.revision,
    )


def _result(result: SearchResult) -> memory_pb2.SearchResult:
    return memory_pb2.SearchResult(
        path=result.path,
        start_line=result.start_line,
        end_line=result.end_line,
        score=result.score,
        vector_score=result.vector_score,
        text_score=result.text_score,
        rerank_score=result.rerank_score,
        snippet=result.snippet,
        source=_number(result.source, common_pb2.Source.DESCRIPTOR),
        citation=result.citation,
        file_hash=result.file_hash,
        heading=result.heading,
        revision=result.revision.token,
        explanation=result.explanation,
    )


def _get_response(content: Content) -> memory_pb2.MemoryGetResponse:
    statuses = memory_pb2.MemoryGetResponse
    response = statuses(
        path=content.path,
        text=content.excerpt.text,
        lines=content.excerpt.lines,
        truncated=content.excerpt.truncated,
        next_from=content.excerpt.next_from,
        status=statuses.READ_STATUS_OK if content.found else statuses.READ_STATUS_NOT_FOUND,
        file_hash=content.hash,
    )
    setattr(response, "from", content.first)
    return response


def _status_response(state: State) -> memory_pb2.MemoryServiceStatusResponse:
    return memory_pb2.MemoryServiceStatusResponse(
        workspaces=map(_workspace, state.workspaces),
        model=_model(state.model) if state.model else None,
        disk_bytes=state.disk_bytes,
        version=state.version,
    )


def _workspace(state: WorkspaceState) -> memory_pb2.WorkspaceStatus:
    index = state.index
    return memory_pb2.WorkspaceStatus(
        workspace=index.scope.workspace,
        files=index.files,
        chunks=index.chunks,
        pending=index.pending,
        quarantined=[
            memory_pb2.QuarantinedFile(path=file.path, reason=file.problem.reason, detail=file.problem.detail)
            for file in index.quarantined
        ],
        revision=index.revision,
        available=not state.problem,
        problem=state.problem,
    )


def _model(model: ModelInfo) -> common_pb2.Model:
    return common_pb2.Model(
        name=model.name,
        fingerprint=model.fingerprint,
        dimensions=model.dimensions,
        window=model.window,
        engine=model.engine,
        provider=model.provider,
    )
