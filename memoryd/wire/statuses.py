"""IndexStatus ↔ WorkspaceStatus, and how parts answer."""

from __future__ import annotations

from memoryd.domain.files import Problem
from memoryd.domain.names import Scope
from memoryd.ports import FileWarning, IndexFailure, IndexStatus, PartProbe, QuarantinedFile
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
        lag_seconds=status.lag,
        checked_at=status.checked,
        failure=_failure_to(status.failure) if status.failure else None,
        warnings=[memory_pb2.FileWarning(path=file.path, warning=file.warning) for file in status.warnings],
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
        lag=status.lag_seconds,
        checked=status.checked_at,
        failure=_failure_from(status.failure) if status.HasField("failure") else None,
        warnings=tuple(FileWarning(file.path, file.warning) for file in status.warnings),
    )


def probe_to(probe: PartProbe) -> memory_pb2.PartProbe:
    """Write down how a part has answered."""
    return memory_pb2.PartProbe(
        part=probe.part, milliseconds=probe.milliseconds, reason=probe.reason, detail=probe.detail
    )


def probe_from(probe: memory_pb2.PartProbe) -> PartProbe:
    """Read how a part has answered."""
    return PartProbe(probe.part, probe.milliseconds, probe.reason, probe.detail)


def _failure_to(failure: IndexFailure) -> memory_pb2.IndexFailure:
    return memory_pb2.IndexFailure(
        stage=failure.stage, reason=failure.reason, detail=failure.detail, at=failure.at, ongoing=failure.ongoing
    )


def _failure_from(failure: memory_pb2.IndexFailure) -> IndexFailure:
    return IndexFailure(failure.stage, failure.reason, failure.detail, failure.at, failure.ongoing)
