"""Stages: each has its own deadline out of the call's, its time is kept, and its failure is reported, not raised."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from prometheus_client import Counter, Histogram

from memoryd import tracing
from memoryd.breaker import OPEN, Breaker
from memoryd.domain.queries import Degraded, Stage
from memoryd.errors import MODEL_ABSENT, DataError, DeadlineExceededError, MemorydError, UnavailableError

T = TypeVar("T")

_log = structlog.get_logger(__name__)

STAGE_SECONDS = Histogram(
    "memoryd_search_stage_seconds",
    "Time of each search stage.",
    ["stage"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
_SECONDS = {stage: STAGE_SECONDS.labels(stage.value) for stage in Stage}  # looked up once
STAGE_DEGRADED = Counter("memoryd_search_degraded_total", "Search stages that were skipped.", ["stage", "reason"])


BEFORE = "the order before it"
"""What is done where the rerank stage fails."""
CUT_SHORT = "CUT_SHORT"
"""Reason of a stage that took only a part: the beginning of a query, or the first of very many candidates."""


class Stages:
    """The stages of one search."""

    def __init__(self, timeout: float, patience: float = 0.0) -> None:
        """Begin a search that has `timeout` seconds; see `SearchSettings.breaker_patience`."""
        self._end = time.monotonic() + timeout
        self._patience = patience
        self.timings: dict[Stage, float] = {}
        self._degraded: list[Degraded] = []

    @property
    def degraded(self) -> list[Degraded]:
        """What was noted, in the order of the stages."""
        order = list(Stage)
        return sorted(self._degraded, key=lambda entry: order.index(entry.stage))

    @property
    def left(self) -> float:
        """Seconds until the call's deadline, at least 0."""
        return max(self._end - time.monotonic(), 0.0)

    async def run(
        self,
        stage: Stage,
        work: Callable[[float], Awaitable[T]],
        *,
        share: float,
        instead: str,
        breaker: Breaker | None = None,
    ) -> T | None:
        """Do `work(seconds)` within a share of the time left; on failure note what is done `instead`, return None.

        Its `breaker` is told how the dependency fared. What the dependency refuses, for its own good reasons, is an
        answer; so is no time at all.
        """
        with tracing.span(f"search.{stage.value}") as span:
            return await self._run(stage, work, self.left * share, instead, breaker, span)

    async def _run(
        self,
        stage: Stage,
        work: Callable[[float], Awaitable[T]],
        budget: float,
        instead: str,
        breaker: Breaker | None,
        span: tracing.Span,
    ) -> T | None:
        began = time.monotonic()
        fared: Callable[[Breaker], None] = Breaker.failed
        try:
            if breaker:
                breaker.enter()
            async with asyncio.timeout(budget):
                done = await work(budget)
            fared = Breaker.succeeded
        except (TimeoutError, DeadlineExceededError):
            fared = Breaker.failed if budget >= self._patience else _unknown
            span.failed("DEADLINE_EXCEEDED")
            self.note(stage, "DEADLINE_EXCEEDED", f"no answer within {budget * 1000:.0f} ms", instead)
        except (DataError, UnavailableError) as error:
            fared = _unavailable(stage, error)
            span.failed(error.reason)
            self.note(stage, error.reason, f"what the {stage.value} stage needs is unavailable", instead)
        except MemorydError as error:
            fared = Breaker.succeeded
            span.failed(error.reason)
            self.note(stage, error.reason, str(error), instead)
        except Exception:  # noqa: BLE001  (a fault in one stage must not take the others' results away)
            _log.exception("search_stage_failed", stage=stage.value)
            span.failed("INTERNAL")
            self.note(stage, "INTERNAL", "an internal error, see the server's log", instead)
        except asyncio.CancelledError:
            fared = _unknown
            raise
        else:
            return done
        finally:
            self._add(stage, time.monotonic() - began)
            if breaker:
                fared(breaker)
        return None

    def add(self, stage: Stage, seconds: float) -> None:
        """Add to a stage's time what has just been done without `run`."""
        tracing.past(f"search.{stage.value}", seconds)
        self._add(stage, seconds)

    def _add(self, stage: Stage, seconds: float) -> None:
        self.timings[stage] = self.timings.get(stage, 0.0) + seconds * 1000
        _SECONDS[stage].observe(seconds)

    def note(self, stage: Stage, reason: str, detail: str, instead: str) -> None:
        """Report a stage that did not do what was asked of it; what several sub-queries met is reported once."""
        STAGE_DEGRADED.labels(stage.value, reason).inc()
        entry = Degraded(stage=stage, reason=reason, detail=detail, instead=instead)
        if entry not in self._degraded:
            self._degraded.append(entry)


def _unknown(_: Breaker) -> None:
    """Leave a breaker as it is: how the dependency fared is not known."""


def _unavailable(stage: Stage, error: DataError | UnavailableError) -> Callable[[Breaker], None]:
    """Log what made a stage unavailable, for the operator alone: it may name folders and hosts."""
    if error.reason != OPEN:
        _log.warning("search_stage_unavailable", stage=stage.value, reason=error.reason, detail=str(error))
    # In these cases nothing was asked, and nothing waited for.
    return _unknown if error.reason in (OPEN, MODEL_ABSENT) else Breaker.failed
