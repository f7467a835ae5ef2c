import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from memoryd import errors
from memoryd.server.status import error_info, to_error, to_status


def test_every_error_that_may_reach_a_caller_has_its_code() -> None:
    codes = {
        kind.__name__: to_status(kind("what", fact="1"), "r").code for kind in errors.MemorydError.__subclasses__()
    }
    assert codes == {
        "InvalidInputError": 3,
        "DeadlineExceededError": 4,
        "NotFoundError": 5,
        "PermissionDeniedError": 7,
        "ResourceExhaustedError": 8,
        "PreconditionFailedError": 9,
        "ModelError": 9,
        "ConflictError": 10,
        "UnimplementedError": 12,
        "ConfigError": 13,
        "UnavailableError": 14,
        "DataError": 15,
        "UnauthenticatedError": 16,
    }


@pytest.mark.parametrize(
    "kind", [kind for kind in errors.MemorydError.__subclasses__() if kind is not errors.ConfigError]
)
def test_an_error_survives_the_way_to_the_client(kind: type[errors.MemorydError]) -> None:
    status = to_status(kind("what, which, what now", fact="1"), "r")
    (code,) = (code for code in StatusCode if code.value[0] == status.code)
    error = to_error(code, status.message, error_info(status))
    assert type(error) is kind
    assert (str(error), error.reason, error.details) == ("what, which, what now", kind.default_reason, {"fact": "1"})


def test_a_reason_of_its_own_survives_too() -> None:
    info = error_info(to_status(errors.PreconditionFailedError("x", reason="HASH_MISMATCH", current_hash="ab"), "r"))
    assert info is not None
    assert (info.reason, info.domain, dict(info.metadata)) == ("HASH_MISMATCH", "memoryd", {"current_hash": "ab"})


@pytest.mark.parametrize("error", [ValueError("driver text"), errors.ConfigError("/some/folder"), KeyError("k")])
def test_what_is_not_for_callers_shows_them_the_request_id_only(error: Exception) -> None:
    status = to_status(error, "req-1")
    assert status.message == "internal error; the server's log has it under request id req-1"
    info = error_info(status)
    assert info is not None
    assert (info.reason, dict(info.metadata)) == ("INTERNAL", {})


def test_when_to_try_again_is_told_in_the_standard_form_too() -> None:
    status = to_status(errors.ResourceExhaustedError("full", retry_after=1.25), "r")
    retry = error_details_pb2.RetryInfo()
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 1250
    error = to_error(StatusCode.RESOURCE_EXHAUSTED, status.message, error_info(status))
    assert isinstance(error, errors.ResourceExhaustedError)
    assert error.retry_after == 1.25
    assert errors.ResourceExhaustedError("full", retry_after=0.0).retry_after == 0.05
    assert errors.ResourceExhaustedError("full").retry_after is None


def test_a_timeout_is_a_deadline() -> None:
    status = to_status(TimeoutError(), "r")
    assert status.code == 4
    assert "allow it more time" in status.message


def test_a_status_fits_into_the_trailers_that_clients_accept() -> None:
    details = {f"fact{number}": "界" * 4000 for number in range(2)}
    status = to_status(errors.InvalidInputError("界\udc80" * 4000, **details), "r")
    # Percent-encoding makes 9 bytes of a Chinese character, base64 adds a third.
    assert len(status.message.encode()) * 3 + status.ByteSize() * 4 / 3 < 8192


def test_a_status_of_somebody_else_has_no_info() -> None:
    assert error_info(None) is None
    assert error_info(status_pb2.Status(code=3, message="x")) is None
