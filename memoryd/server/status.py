"""Errors as gRPC status: the only place that maps them."""

from __future__ import annotations

from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from grpc_status import rpc_status

from memoryd import errors

DOMAIN = "memoryd"
# In an answer's initial metadata, in an error's trailing metadata; a caller may choose the value by sending it.
REQUEST_ID = "x-request-id"

CODES: dict[type[errors.MemorydError], StatusCode] = {
    errors.InvalidInputError: StatusCode.INVALID_ARGUMENT,
    errors.UnauthenticatedError: StatusCode.UNAUTHENTICATED,
    errors.PermissionDeniedError: StatusCode.PERMISSION_DENIED,
    errors.NotFoundError: StatusCode.NOT_FOUND,
    errors.PreconditionFailedError: StatusCode.FAILED_PRECONDITION,
    errors.ConflictError: StatusCode.ABORTED,
    errors.ResourceExhaustedError: StatusCode.RESOURCE_EXHAUSTED,
    errors.UnavailableError: StatusCode.UNAVAILABLE,
    errors.DeadlineExceededError: StatusCode.DEADLINE_EXCEEDED,
    errors.UnimplementedError: StatusCode.UNIMPLEMENTED,
    errors.ModelError: StatusCode.FAILED_PRECONDITION,
    errors.DataError: StatusCode.DATA_LOSS,
}

# Status travels in HTTP/2 trailers, percent-encoded and again in base64; clients refuse more than 8 KiB of them.
_MAX_MESSAGE = 500
_MAX_DETAIL = 200


def to_status(error: Exception, request_id: str) -> status_pb2.Status:
    """Map an error to a google.rpc.Status with an ErrorInfo, and a RetryInfo where it is known when to try again.

    What is not ours becomes INTERNAL without its text.
    """
    if isinstance(error, TimeoutError):
        error = errors.DeadlineExceededError("the call's deadline passed; allow it more time or ask for less")
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), StatusCode.INTERNAL)
    reason, details = "INTERNAL", dict[str, str]()
    message = f"internal error; the server's log has it under request id {request_id}"
    if isinstance(error, errors.MemorydError) and code is not StatusCode.INTERNAL:
        reason, details, message = error.reason, error.details, str(error)
    info = error_details_pb2.ErrorInfo(
        reason=reason, domain=DOMAIN, metadata={key: _clip(value, _MAX_DETAIL) for key, value in details.items()}
    )
    packed = [_pack(info)]
    if isinstance(error, errors.ResourceExhaustedError) and error.retry_after is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(round(error.retry_after * 1000))
        packed.append(_pack(retry))
    return status_pb2.Status(code=code.value[0], message=_clip(message, _MAX_MESSAGE), details=packed)


def error_info(status: status_pb2.Status | None) -> error_details_pb2.ErrorInfo | None:
    """Find the ErrorInfo of a status that memoryd sent."""
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            return info
    return None


def to_error(code: StatusCode, message: str, info: error_details_pb2.ErrorInfo | None) -> errors.MemorydError:
    """Map a status back to the error that it was made of; the reverse of `to_status`."""
    kinds = [kind for kind, mapped in CODES.items() if mapped is code] or [errors.MemorydError]
    if info is None:
        return kinds[0](message)
    named = [kind for kind in kinds if kind.default_reason == info.reason]
    error = (named or kinds)[0](message, reason=info.reason)
    error.details.update(info.metadata)
    return error


def read_error(error: AioRpcError) -> errors.MemorydError | None:
    """Read the error that a memoryd server sent, with the call's `request_id` in its details; None for any other."""
    # from_call reads metadata, code and details, which AioRpcError has; the stubs know grpc.Call alone.
    info = error_info(rpc_status.from_call(error))  # type: ignore[arg-type]  # see above
    if info is None:
        return None
    sent = to_error(error.code(), error.details() or error.code().name, info)
    request_id = (error.trailing_metadata() or Metadata()).get(REQUEST_ID)
    if isinstance(request_id, str):
        sent.details["request_id"] = request_id
    return sent


def method_name(method: object) -> str:
    """Name the method that a stub's attribute calls. gRPC has no public way to ask; spans alone are named by it."""
    name = getattr(method, "_method", b"unknown")
    return name.decode() if isinstance(name, bytes) else str(name)


def _pack(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed


def _clip(text: str, limit: int) -> str:
    # A path from a broken caller may hold what is not Unicode; an error about it must not become another one.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"
