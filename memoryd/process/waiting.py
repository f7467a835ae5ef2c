"""Waiting for what a process depends on: as long as it takes, visibly."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from memoryd.errors import DeadlineExceededError, ResourceExhaustedError, UnavailableError
from memoryd.server.lifecycle import Server

T = TypeVar("T")

# Seconds between attempts: the bound doubles from the first to the longest, with jitter.
_FIRST, _LONGEST = 0.1, 5.0
_PASSING = (UnavailableError, DeadlineExceededError, ResourceExhaustedError)

_log = structlog.get_logger(__name__)


async def until_available(server: Server, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Try until it works, however long that takes; callers and the log are told what is waited for.

    Other errors than those that pass by themselves are raised: a wrong password is not waited for.
    """
    if server.waits_for != what:
        server.waits_for = what
        _log.info("waiting", waits_for=what)
    failures = 0
    while True:
        try:
            answer = await attempt()
        except _PASSING as error:
            longest = min(_FIRST * 2 ** min(failures, 16), _LONGEST)
            failures += 1
            if failures == 1 or longest == _LONGEST:
                _log.warning("still waiting", waits_for=what, attempts=failures, error=str(error))
            await asyncio.sleep(random.uniform(longest / 2, longest))  # noqa: S311  (jitter)
        else:
            if failures:
                _log.info("answered", waited_for=what, attempts=failures + 1)
            return answer
