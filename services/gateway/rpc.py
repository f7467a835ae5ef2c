"""MemoryService: proto ↔ use case, nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import grpc

from memoryd.auth import authenticate, resolve_scope
from memoryd.domain.names import Scope
from memoryd.generations.admin import GenerationStatus
from memoryd.ports import KeyStore
from memoryd.server.calls import current
from memoryd.server.lifecycle import Server
from memoryd.v1 import memory_pb2, memory_pb2_grpc
from memoryd.wire.answers import answer_facts, answer_to
from memoryd.wire.models import model_to
from memoryd.wire.queries import chat_from, query_from
from memoryd.wire.statuses import probe_to, status_to
from services.gateway.service import DEFAULT_LINES, Content, GatewayService, Read, State, WorkspaceState

SERVICE = memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name
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
        found = await self._service.search(scope, query_from(request), timeout=current().left)
        current().facts |= answer_facts(found.answer)
        return answer_to(found.answer, found.query)

    async def MemoryGet(self, request: memory_pb2.MemoryGetRequest, context: _Context) -> memory_pb2.MemoryGetResponse:
        """Read lines."""
        scope = _scope(request.workspace)
        content = await self._service.get(scope, _read(request))
        current().facts |= {"found": content.found, "lines": content.excerpt.lines}
        return _get_response(content)

    async def Sync(
        self, request: memory_pb2.MemoryServiceSyncRequest, context: _Context
    ) -> memory_pb2.MemoryServiceSyncResponse:
        """Compare, and wait."""
        changed, pending = await self._service.sync(_scope(request.workspace), timeout=current().left)
        current().facts |= {"changed": changed, "pending": pending}
        return memory_pb2.MemoryServiceSyncResponse(changed=changed, pending=pending)

    async def Status(
        self, request: memory_pb2.MemoryServiceStatusRequest, context: _Context
    ) -> memory_pb2.MemoryServiceStatusResponse:
        """Report."""
        principal = current().principal
        names = [request.workspace] if request.workspace else sorted(principal.workspaces)
        state = await self._service.status([resolve_scope(principal, name) for name in names])
        current().facts["workspaces"] = len(names)
        return _status_response(state)

    async def Probe(
        self, request: memory_pb2.MemoryServiceProbeRequest, context: _Context
    ) -> memory_pb2.MemoryServiceProbeResponse:
        """Ask the parts."""
        scope = _scope(request.workspace or min(current().principal.workspaces))
        parts = await self._service.probe(scope, timeout=current().left)
        current().facts["failed"] = sum(bool(part.reason) for part in parts)
        response = memory_pb2.MemoryServiceProbeResponse(parts=map(probe_to, parts))
        for part in response.parts:
            part.detail = ""  # as a failure's: it may name addresses and folders
        return response


def _scope(workspace: str) -> Scope:
    scope = resolve_scope(current().principal, workspace)
    current().facts["workspace"] = scope.workspace
    return scope


def _read(request: memory_pb2.MemoryGetRequest) -> Read:
    # `from` is a keyword of Python's: the field can be had by name only.
    return Read(
        path=request.path,
        first=getattr(request, "from") if request.HasField("from") else 1,
        lines=request.lines if request.HasField("lines") else DEFAULT_LINES,
        expected_hash=request.expected_hash,
        chat=chat_from(request.chat),
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
        total_lines=content.excerpt.of,
    )
    setattr(response, "from", content.first)
    return response


def _status_response(state: State) -> memory_pb2.MemoryServiceStatusResponse:
    return memory_pb2.MemoryServiceStatusResponse(
        workspaces=map(_workspace, state.workspaces),
        model=model_to(state.model) if state.model else None,
        disk_bytes=state.disk_bytes,
        version=state.version,
        generations=map(_generation, state.generations),
        calibration=state.model.calibration if state.model else "",
    )


def _workspace(state: WorkspaceState) -> memory_pb2.WorkspaceStatus:
    status = status_to(state.index)
    problem = state.folder.problem
    status.available = problem is None
    status.problem = problem.detail if problem else ""
    status.reconciled_at = state.folder.reconciled
    if status.HasField("failure"):
        status.failure.detail = ""  # it may name addresses and folders, which are the operator's business
    return status


def _generation(status: GenerationStatus) -> memory_pb2.GenerationStatus:
    progress = status.progress
    return memory_pb2.GenerationStatus(
        id=status.generation.id,
        model=status.generation.model.name,
        state=status.generation.state,
        current=status.current,
        progress=progress.done if progress else 0.0,
        pending=progress.pending if progress else 0,
        chunks=progress.chunks if progress else 0,
        eta_seconds=progress.eta if progress else None,
        problem=progress.problem if progress else "",
    )
