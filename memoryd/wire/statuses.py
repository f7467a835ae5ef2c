"""IndexStatus ↔ WorkspaceStatus."""

from __future__ import annotations

from memoryd.domain.files import Problem
from memoryd.domain.names import Scope
from memoryd.ports import IndexStatus, QuarantinedFile
from memoryd.v1 import memory_pb2


def status_to(status: IndexStatus) -> memory_pb2.WorkspaceStatus:
    """Write a status down; whether the folder can be read is not in it."""
    return memory_pb2.WorkspaceStatus(
        workspace=status.scope.workspace,
        files=status.files,
        chunks=status.chunks,
        pending=status.pending,
        quarantined=[
            memory_pb2.QuarantinedFile(path=file.path, reason=file.problem.reason, detail=file.problem.detail)
            for file in status.quarantined
        ],
        revision=status.revision,
    )


def status_from(status: memory_pb2.WorkspaceStatus, scope: Scope) -> IndexStatus:
    """Read the status of the workspace that was asked for."""
    return IndexStatus(
        scope=scope,
        files=status.files,
        chunks=status.chunks,
        pending=status.pending,
        quarantined=tuple(QuarantinedFile(file.path, Problem(file.reason, file.detail)) for file in status.quarantined),
        revision=status.revision,
    )
