"""Which changes may overtake an import: edits do, a bulk of changes does not, however it is spread over time."""

from __future__ import annotations

import time
from collections.abc import Callable

# A person or an agent seldom saves more often for long.
_PER_SECOND = 1.0


class LiveBudget:
    """How many states of one workspace may be live: a token bucket.

    Live states are indexed before everything else, in the order in which they came. So thousands of files written one
    after the other must not all be live, or the next edit would wait behind them. A batch that does not fit into the
    budget takes nothing of it: a bulk of changes leaves it to the small batch that follows.

    Args:
        limit: most live states in a burst.
        clock: monotonic seconds.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._left, self._at = float(limit), clock()

    def grant(self, edits: int, others: int) -> tuple[bool, bool]:
        """Whether the edits of a batch are live, and whether its new and deleted files are.

        Edits come first, and the others leave half of the budget to them: an import is made of new files. New and
        deleted files are judged together: where a renamed file's deletion came first, it would be found nowhere.
        """
        now = self._clock()
        self._left, self._at = min(self._limit, self._left + (now - self._at) * _PER_SECOND), now
        return self._take(edits, self._left), self._take(others, self._left - self._limit / 2)

    def _take(self, count: int, available: float) -> bool:
        fits = count <= available
        if fits:
            self._left -= count
        return fits
