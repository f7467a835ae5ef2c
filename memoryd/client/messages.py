"""Between the client's plain values and the messages."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

from memoryd.client.replies import (
    Degraded,
    FileWarning,
    GenerationStatus,
    GetReply,
    IndexFailure,
    Model,
    QuarantinedFile,
    SearchReply,
    SearchResult,
    StatusReply,
    WorkspaceStatus,
)
from memoryd.errors import InvalidInputError, shown
from memoryd.v1 import common_pb2, memory_pb2

_Message = TypeVar("_Message", bound=Message)

SOURCE = common_pb2.Source.DESCRIPTOR
MODE = common_pb2.SearchMode.DESCRIPTOR
RERANK = common_pb2.RerankMode.DESCRIPTOR
CHAT = common_pb2.Chat.DESCRIPTOR
STAGE = common_pb2.Stage.DESCRIPTOR
CITATIONS = memory_pb2.Citations.DESCRIPTOR
KIND = memory_pb2.TypedQuery.Kind.DESCRIPTOR
READ_STATUS = memory_pb2.MemoryGetResponse.ReadStatus.DESCRIPTOR


def number(field: str, name: str, enum: EnumDescriptor) -> Any:  # noqa: ANN401  (the stubs make each enum a type)
    """Find an enum's number by the contract's name of a value, "hybrid" say; the empty name is the default."""
    value = enum.values_by_name.get(_prefix(enum) + (name or "unspecified").upper())
    if value is None:
        names = ", ".join(_name(known.number, enum) for known in enum.values if known.number)
        raise InvalidInputError(f"{field}: {name!r} is not known; it must be one of {names}", field=field)
    return value.number


def fill(message: _Message, **fields: object) -> _Message:
    """Set the fields of a message that are not None. Raises InvalidInputError that names what can't be sent."""
    for name, value in fields.items():
        if value is None:
            continue
        try:
            if isinstance(value, tuple):
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(f"{name}: {shown(value)} {_wrong(error)}", field=name) from error
    return message


def _wrong(error: ValueError | TypeError) -> str:
    if isinstance(error, UnicodeError):
        return "is no valid Unicode"
    return "is of a wrong type" if isinstance(error, TypeError) else "is out of range"


def search_reply(response: memory_pb2.MemorySearchResponse) -> SearchReply:
    """Read the answer of a search."""
    model = _model(response.model) if response.HasField("model") else None
    return SearchReply(
        results=tuple(map(_result, response.results)),
        mode=_name(response.mode, MODE),
        provider=model.provider if model else "",
        model=model,
        fallback=response.fallback,
        citations=response.citations,
        stale=response.stale,
        pending=response.pending,
        degraded=tuple(
            Degraded(_name(entry.stage, STAGE), entry.reason, entry.detail, entry.instead)
            for entry in response.degraded
        ),
        timings={_name(timing.stage, STAGE): timing.milliseconds for timing in response.timings},
        revision=response.revision,
        set_aside=_quarantined(response.set_aside) if response.HasField("set_aside") else None,
    )


def get_reply(response: memory_pb2.MemoryGetResponse) -> GetReply:
    """Read lines of a file."""
    return GetReply(
        path=response.path,
        text=response.text,
        start=getattr(response, "from"),
        lines=response.lines,
        truncated=response.truncated,
        next_from=response.next_from if response.HasField("next_from") else None,
        status=_name(response.status, READ_STATUS),
        file_hash=response.file_hash,
        total_lines=response.total_lines,
    )


def status_reply(response: memory_pb2.MemoryServiceStatusResponse) -> StatusReply:
    """Read a status."""
    return StatusReply(
        workspaces=tuple(map(_workspace, response.workspaces)),
        model=_model(response.model) if response.HasField("model") else None,
        disk_bytes=response.disk_bytes,
        version=response.version,
        generations=tuple(map(_generation, response.generations)),
        calibration=response.calibration,
    )


def _result(result: memory_pb2.SearchResult) -> SearchResult:
    return SearchResult(
        path=result.path,
        start_line=result.start_line,
        end_line=result.end_line,
        score=result.score,
        vector_score=result.vector_score if result.HasField("vector_score") else None,
        text_score=result.text_score if result.HasField("text_score") else None,
        rerank_score=result.rerank_score if result.HasField("rerank_score") else None,
        snippet=result.snippet,
        source=_name(result.source, SOURCE),
        citation=result.citation,
        file_hash=result.file_hash,
        heading=result.heading,
        revision=result.revision,
        explanation=tuple(result.explanation),
        stale=result.stale,
    )


def _quarantined(file: memory_pb2.QuarantinedFile) -> QuarantinedFile:
    return QuarantinedFile(file.path, file.reason, file.detail)


def _workspace(status: memory_pb2.WorkspaceStatus) -> WorkspaceStatus:
    return WorkspaceStatus(
        workspace=status.workspace,
        files=status.files,
        chunks=status.chunks,
        pending=status.pending,
        quarantined=tuple(map(_quarantined, status.quarantined)),
        revision=status.revision,
        available=status.available,
        problem=status.problem,
        lag_seconds=status.lag_seconds,
        checked_at=status.checked_at,
        failure=_failure(status.failure) if status.HasField("failure") else None,
        warnings=tuple(FileWarning(file.path, file.warning) for file in status.warnings),
        reconciled_at=status.reconciled_at,
    )


def _generation(status: memory_pb2.GenerationStatus) -> GenerationStatus:
    return GenerationStatus(
        id=status.id,
        model=status.model,
        state=status.state,
        current=status.current,
        progress=status.progress,
        pending=status.pending,
        chunks=status.chunks,
        eta=status.eta_seconds if status.HasField("eta_seconds") else None,
        problem=status.problem,
    )


def _failure(failure: memory_pb2.IndexFailure) -> IndexFailure:
    return IndexFailure(failure.stage, failure.reason, failure.at, failure.ongoing)


def _model(model: common_pb2.Model) -> Model:
    return Model(
        name=model.name,
        fingerprint=model.fingerprint,
        dimensions=model.dimensions,
        window=model.window,
        engine=model.engine,
        provider=model.provider,
    )


def _name(value: int, enum: EnumDescriptor) -> str:
    """Give the contract's name of an enum's value; a number that this version does not know stays one."""
    known = enum.values_by_number.get(value)
    return known.name.removeprefix(_prefix(enum)).lower() if known else str(value)


def _prefix(enum: EnumDescriptor) -> str:
    return enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
