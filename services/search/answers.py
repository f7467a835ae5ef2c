"""Whole answers, kept as long as nothing of their workspace has changed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from cachetools import TTLCache

from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from memoryd.domain.queries import SearchAnswer, SearchQuery, SearchResult
from services.search.flights import Flights
from services.search.metrics import CACHE_BYTES, Outcome, count

_NAME = "answers"
_SCOPES = 256
_ENTRY_BYTES, _RESULT_BYTES = 2_000, 1_500  # beside texts


@dataclass(frozen=True, slots=True)
class _Key:
    """What an answer depends on: with equal keys the legs would find the same.

    Attributes:
        scope: the workspace.
        view: number of its view of the outlines, see `Answers`.
        query: all of it, the kind of chat included; but for a freshness, which is over.
        today: decay counts from it.
    """

    scope: Scope
    view: int
    query: SearchQuery
    today: str


class Answers:
    """Answers by workspace, view of its outlines, query and day.

    A view is told from others by identity: adapters give the same object while nothing was committed. (Its sequence
    would do, but for a manifest that was lost and begun anew.) With the first search that sees a new view, all answers
    of the views before are dropped: so what was purged leaves with the next search, or when `seconds` are over.
    """

    def __init__(self, most_bytes: int, seconds: float) -> None:
        """Keep at most so many bytes, for so long; 0 bytes: nothing."""
        self._kept: TTLCache[_Key, SearchAnswer] = TTLCache(most_bytes, seconds, time.monotonic, _size)
        self._views: dict[Scope, tuple[int, WorkspaceView]] = {}
        self._numbers = 0
        self._flights: Flights[SearchAnswer] = Flights()

    async def get(
        self,
        scope: Scope,
        view: WorkspaceView,
        query: SearchQuery,
        seconds: float,
        make: Callable[[], Awaitable[SearchAnswer]],
    ) -> SearchAnswer:
        """Give an answer, made within `seconds` where there is none and nobody else is making it.

        `view` is current. Degraded answers are not kept, and not shared.
        """
        if not self._kept.maxsize:
            return await make()
        today = time.strftime("%Y-%m-%d", time.gmtime())
        key = _Key(scope, self._number(scope, view), replace(query, freshness=None), today)
        if (kept := self._kept.get(key)) is not None:
            count(_NAME, Outcome.HIT)
            return replace(kept, timings={})
        answer, shared = await self._flights.run(key, time.monotonic() + seconds, make)
        count(_NAME, Outcome.SHARED if shared else Outcome.MISS)
        if answer.degraded:
            return await make() if shared else answer
        if _size(answer) <= self._kept.maxsize and self._views.get(scope, (0, None))[0] == key.view:
            self._kept[key] = answer
            CACHE_BYTES.labels(_NAME).set(self._kept.currsize)
        return answer

    @property
    def size(self) -> int:
        """About how many bytes are kept."""
        return int(self._kept.currsize)

    def forget(self, scope: Scope) -> None:
        """Drop all answers of a workspace at once."""
        self._views.pop(scope, None)
        for key in [key for key in self._kept if key.scope == scope]:
            del self._kept[key]
        CACHE_BYTES.labels(_NAME).set(self._kept.currsize)

    def _number(self, scope: Scope, view: WorkspaceView) -> int:
        number, last = self._views.get(scope, (0, None))
        if last is not view:
            self.forget(scope)
            number = self._numbers = self._numbers + 1
            self._views[scope] = number, view
            if len(self._views) > _SCOPES:
                self.forget(next(iter(self._views)))
        return number


def _size(answer: SearchAnswer) -> int:
    return _ENTRY_BYTES + sum(map(_result_size, answer.results))


def _result_size(result: SearchResult) -> int:
    texts = (result.snippet, result.heading, result.path, *result.explanation)
    return _RESULT_BYTES + 4 * sum(map(len, texts))  # at most four bytes a character
