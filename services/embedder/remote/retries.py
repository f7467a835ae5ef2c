"""Sending a request again: a bounded number of times, with jitter, within a deadline."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.embedder.remote.api import PassingError

_Answer = TypeVar("_Answer")

_BASE, _CAP = 0.25, 8.0  # seconds
_JITTER = random.SystemRandom()


async def retried(send: Callable[[], Awaitable[_Answer]], attempts: int, end: float) -> _Answer:
    """Send until it succeeds. Raises the last error where no attempt is left, or the wait would outlast `end`.

    `end` is on the clock of time.monotonic. What the provider asks to wait is kept to, and a tenth added at random, so
    that not all clients come back at the same moment.
    """
    for attempt in range(1, attempts + 1):
        try:
            return await send()
        except PassingError as passing:
            doubled = min(_CAP, _BASE * 2.0 ** (attempt - 1))
            wait = _JITTER.uniform(doubled / 2, doubled)
            if passing.wait is not None:
                wait = passing.wait * _JITTER.uniform(1.0, 1.1)
            if attempt == attempts or time.monotonic() + wait >= end:
                raise passing.error from passing
        await asyncio.sleep(wait)
    raise AssertionError  # there is at least one attempt
