"""Which failures pass by themselves, and how long to wait for that."""

from __future__ import annotations

import random

from memoryd.errors import InvalidInputError, MemorydError

# Anything that the input is not to blame for. A dependency may be away for a day: nothing is dropped because of it.
_PASSING = (TimeoutError, OSError, MemoryError)
_JITTER = random.SystemRandom()


def is_transient(error: BaseException) -> bool:
    """Whether the same input may pass later, without being changed.

    Of the domain errors all but InvalidInputError do: a model that is missing, a damaged store, a wrong setting are
    nothing that a file can be set aside for.
    """
    if isinstance(error, MemorydError):
        return not isinstance(error, InvalidInputError) and error.reason != MemorydError.default_reason
    return isinstance(error, _PASSING)


def reason_of(error: BaseException) -> str:
    """Name a failure for a metric or a log: the domain reason, else the type; never a driver's text."""
    return error.reason if isinstance(error, MemorydError) else type(error).__name__


def backoff(attempt: int, base: float, cap: float) -> float:
    """Seconds to wait after a failed attempt (from 1): doubling, bounded, with jitter between half and all of it."""
    full = min(cap, base * 2.0 ** min(attempt - 1, 32))
    return full * _JITTER.uniform(0.5, 1.0)
