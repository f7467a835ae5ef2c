"""Circuit breakers: what failed again and again is left alone for a while, so that it costs no call its time.

Of the libraries none fits: purgatory lets every waiting call through when it tries again, which a dependency that is
slow, not down, turns into as many late answers; aiobreaker is not maintained.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog
from prometheus_client import Counter, Gauge

from memoryd.errors import UnavailableError

OPEN = "CIRCUIT_OPEN"
"""Reason of a stage that was skipped because what it needs has failed several times in a row."""

_log = structlog.get_logger(__name__)

BREAKER_OPEN = Gauge("memoryd_breaker_open", "1 while a dependency is left alone.", ["dependency"])
BREAKER_OPENED = Counter("memoryd_breaker_opened_total", "How often a dependency began to be.", ["dependency"])


class Breaker:
    """Watches one dependency.

    Closed, it lets every call pass. After `threshold` failures in a row it opens: calls fail at once for `pause`
    seconds, then one is let through, and its outcome closes it or leaves it open for as long again.
    """

    def __init__(
        self, dependency: str, threshold: int, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin closed; `clock` gives seconds."""
        self._dependency, self._threshold, self._pause, self._clock = dependency, threshold, pause, clock
        self._failures = 0
        self._again = 0.0  # when the next call is let through, while it is open
        BREAKER_OPEN.labels(dependency).set(0)

    @property
    def open(self) -> bool:
        """Whether the dependency is left alone."""
        return self._failures >= self._threshold

    def enter(self) -> None:
        """Begin a call. Raises UnavailableError where it is not let through."""
        if not self.open:
            return
        now = self._clock()
        if now < self._again:
            raise UnavailableError(f"{self._dependency}: it failed several times in a row", reason=OPEN)
        self._again = now + self._pause  # others wait for what this one finds

    def succeeded(self) -> None:
        """End a call that the dependency answered."""
        if self.open:
            _log.info("dependency answers again", dependency=self._dependency)
            BREAKER_OPEN.labels(self._dependency).set(0)
        self._failures = 0

    def failed(self) -> None:
        """End a call that it did not answer, or not with an answer."""
        was_open = self.open
        self._failures += 1
        if self.open:
            self._again = self._clock() + self._pause
        if self.open and not was_open:
            _log.warning("dependency left alone", dependency=self._dependency, failures=self._failures)
            BREAKER_OPEN.labels(self._dependency).set(1)
            BREAKER_OPENED.labels(self._dependency).inc()
