"""Domain errors: what went wrong, independent of any transport.

Each carries a `reason` (UPPER_SNAKE, stable, for programs) and a message for a person that names the input and says
what to do now. `memoryd.server` maps them to gRPC status codes; nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NoReturn

_SOONEST = 0.05  # seconds: nobody is told to come back at once to what is full
_SHOWN = 80  # characters of a refused value that its message repeats
_NAMED = 20  # names that a message lists


MODEL_ABSENT = "MODEL_ABSENT"
"""Reason of an UnavailableError: nobody serves the model that was asked for."""


STORE_LOST = "STORE_LOST"
"""Reason of an UnavailableError: a store lacks what it was made with. `ChunkStore.ensure` makes it anew, empty."""


DAMAGED = "DAMAGED"
"""Reason of a DataError: what is on the disk is broken, rather than of another format."""


class MemorydError(Exception):
    """Base of all errors that may reach a caller.

    Attributes:
        reason: stable machine-readable name.
        details: further machine-readable facts, without secrets.
    """

    default_reason: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, *, reason: str | None = None, **details: str) -> None:
        """Keep the message for people, the reason and details for programs."""
        super().__init__(message)
        self.reason = reason or self.default_reason
        self.details = details


class InvalidInputError(MemorydError):
    """The request can't be served as it is, whatever the state of the system."""

    default_reason = "INVALID_INPUT"


class UnauthenticatedError(MemorydError):
    """No credential, or one that is not known."""

    default_reason = "UNAUTHENTICATED"


class PermissionDeniedError(MemorydError):
    """The credential does not cover what was asked for."""

    default_reason = "PERMISSION_DENIED"


class NotFoundError(MemorydError):
    """A named thing does not exist."""

    default_reason = "NOT_FOUND"


class PreconditionFailedError(MemorydError):
    """The state is not the one that the caller expects."""

    default_reason = "PRECONDITION_FAILED"


class ConflictError(MemorydError):
    """A compare-and-set lost its race: read again and decide anew."""

    default_reason = "CONFLICT"


class ResourceExhaustedError(MemorydError):
    """A bounded queue or a quota is full: try again later."""

    default_reason = "RESOURCE_EXHAUSTED"

    def __init__(
        self, message: str, *, reason: str | None = None, retry_after: float | None = None, **details: str
    ) -> None:
        """Keep also when to try again, in seconds from now, where that can be foreseen."""
        super().__init__(message, reason=reason, **details)
        if retry_after is not None:
            self.details["retry_after"] = f"{max(retry_after, _SOONEST):.3g}"

    @property
    def retry_after(self) -> float | None:
        """Seconds after which to try again."""
        try:
            return float(self.details["retry_after"])
        except (KeyError, ValueError):
            return None


class UnavailableError(MemorydError):
    """A dependency does not answer: try again later."""

    default_reason = "UNAVAILABLE"


class DeadlineExceededError(MemorydError):
    """The time ran out first."""

    default_reason = "DEADLINE_EXCEEDED"


class UnimplementedError(MemorydError):
    """This version does not serve the named field or call."""

    default_reason = "UNIMPLEMENTED"


class ModelError(MemorydError):
    """A model is missing, half there or broken."""

    default_reason = "MODEL"


class DataError(MemorydError):
    """Stored data can't be used: another format version, or damaged."""

    default_reason = "DATA"


class ConfigError(MemorydError):
    """A setting is wrong or the environment does not allow what it asks for (port in use, directory locked)."""

    default_reason = "CONFIG"


def refuse(field: str, value: object, rule: str) -> NoReturn:
    """Raise InvalidInputError for a field's value."""
    raise InvalidInputError(f"{field}: {shown(value)} {rule}", field=field)


def shown(value: object) -> str:
    """Give a refused value as its message repeats it: not all of it, where it is long."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def listed(names: Iterable[str]) -> str:
    """Give the names that could have been meant, in order: not all of them, where there are many."""
    known = sorted(names)
    more = f", and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"{', '.join(known[:_NAMED])}{more}" if known else "none"
