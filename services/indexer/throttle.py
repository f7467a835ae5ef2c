"""Leaving the machine to others for a part of the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# However long the work was: a rest outlives no lease by much.
_LONGEST_REST = 10.0


class Throttle:
    """After work of t seconds comes a rest of t · (1 - share) / share, so that the work takes `share` of the time."""

    def __init__(self, share: float = 1.0) -> None:
        """Begin with a share above 0, at most 1: at 1 there is no rest."""
        self._share, self._owed = share, 0.0
        self._eased = asyncio.Event()

    @property
    def share(self) -> float:
        """The share of the time that the work may take."""
        return self._share

    def ease(self, share: float) -> None:
        """Set the share; a rest that is longer than it would be now ends."""
        if share != self._share:
            self._share = share
            self._eased.set()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count what is done as work."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._owed += (time.monotonic() - began) * (1 - self._share) / self._share

    async def rest(self) -> None:
        """Rest for the work that was done since the last rest."""
        owed, self._owed = min(self._owed, _LONGEST_REST), 0.0
        if owed > 0:
            self._eased.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(owed):
                    await self._eased.wait()
