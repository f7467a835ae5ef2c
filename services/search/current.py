"""Searching the generation that answers now, whichever that is, and saying so where a newer one is on its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from memoryd.domain.generations import Generation
from memoryd.domain.names import Scope
from memoryd.domain.queries import Degraded, SearchAnswer, SearchQuery, Stage
from memoryd.generations.live import Live
from memoryd.ports import Searcher
from services.search.stages import STAGE_DEGRADED

P = TypeVar("P")

OLDER_GENERATION = "OLDER_GENERATION"
"""Reason of an answer from indexes that are about to be replaced."""


class CurrentSearch(Searcher, Generic[P]):
    """Implements `memoryd.ports.Searcher` over the open generations. No switch ends a search that is in the middle."""

    def __init__(self, live: Live[P], searcher_of: Callable[[P], Searcher]) -> None:
        """Take the open generations, and what searches one of them."""
        self._live, self._of = live, searcher_of

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        """Run a search within `timeout` seconds."""
        async with self._live.using() as (name, bundle):
            coming, current = self._live.coming, self._live.known.get(name)
            answer = await self._of(bundle).search(scope, query, timeout=timeout)
        degraded = answer.degraded
        if coming is not None and current is not None:
            STAGE_DEGRADED.labels(Stage.EMBED.value, OLDER_GENERATION).inc()
            degraded = (*degraded, _older(current, coming))
        # Two generations count their commits alike: the revision names the one that it belongs to.
        return replace(answer, degraded=degraded, revision=f"{name}.{answer.revision}")


def _older(current: Generation, coming: Generation) -> Degraded:
    if current.model.fingerprint == coming.model.fingerprint:
        return Degraded(
            stage=Stage.EMBED,
            reason=OLDER_GENERATION,
            detail="the index of this version of memoryd is still being built",
            instead="searched the index of an earlier version",
        )
    return Degraded(
        stage=Stage.EMBED,
        reason=OLDER_GENERATION,
        detail=f"the index of model {coming.model.name} is still being built",
        instead=f"searched the index of model {current.model.name}",
    )
