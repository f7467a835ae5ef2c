"""How fast a lane is, from its own batches."""

from __future__ import annotations

# What a batch more leaves of the weight of those before it.
_KEPT = 0.95


class Pace:
    """A running estimate of tokens a second. Methods may be called from any thread."""

    def __init__(self, threads: int, batch_tokens: int) -> None:
        self._threads, self._least = threads, batch_tokens / 2
        self._sums = (0.0, 0.0)  # of tokens and of seconds: replaced together

    def note(self, tokens: int, seconds: float) -> None:
        """Count a batch; small ones say little of the pace under load."""
        if tokens >= self._least:
            sums = self._sums
            self._sums = sums[0] * _KEPT + tokens, sums[1] * _KEPT + seconds

    @property
    def rate(self) -> float:
        """Tokens a second of all threads; 0 where nothing is known yet."""
        done, spent = self._sums
        return done / spent * self._threads if spent else 0.0

    def seconds(self, tokens: int) -> float:
        """Foresee how long tokens take; 0 where nothing is known yet."""
        return tokens / self.rate if self.rate else 0.0
