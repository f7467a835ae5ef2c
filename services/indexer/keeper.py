"""The keeper: begins the generation of the configured model, lets it answer when it has caught up, removes old ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Generic, TypeVar

import structlog

from memoryd.domain.generations import Generation, GenerationState, generation_id
from memoryd.domain.queries import ModelInfo
from memoryd.errors import ConflictError
from memoryd.generations.admin import begin, give_up
from memoryd.generations.live import Live
from memoryd.ports import FileLog, Generations
from services.indexer.failures import reason_of
from services.indexer.generation import IndexedGeneration
from services.indexer.measure import Measure
from services.indexer.settings import GenerationSettings

P = TypeVar("P")

_DAY = 86_400.0
# A look costs calls: it takes no more than a part of the time. But one that opened a model took long for that alone,
# and says nothing of the next one.
_PART = 10
_LONGEST = 10.0
# Part of the files that may still be pending in a generation that takes over: while many are being edited, there is no
# moment at which nothing is.
_LAG = 1000

_log = structlog.get_logger(__name__)


class Keeper(Generic[P]):
    """Looks after all generations of a deployment. Several processes may: each change is a compare-and-set.

    Args:
        registry: their records.
        live: the open ones; all of them are.
        indexed_of: what indexes one of them.
        log: the file log.
        target: the model that is configured now, and its `Generation.origin`; None while it can't be told.
        erase: removes all parts of a generation; called again after a crash.
        settings: see there.
        restarted: this process alone configures the model, so a generation that is complete answers again when its
            model is configured again.
    """

    def __init__(
        self,
        *,
        registry: Generations,
        live: Live[P],
        indexed_of: Callable[[P], IndexedGeneration],
        log: FileLog,
        target: Callable[[], tuple[ModelInfo, str] | None],
        erase: Callable[[Generation], Awaitable[None]],
        settings: GenerationSettings,
        restarted: bool,
    ) -> None:
        self._registry, self._live, self._of, self._target = registry, live, indexed_of, target
        self._erase, self._settings, self._restarted = erase, settings, restarted
        self._measure = Measure(log, registry)

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            began = time.monotonic()
            try:
                await self.look()
            except ConflictError:
                pass  # another process was faster: look again at what it did
            except Exception as error:  # noqa: BLE001  (a registry or a store that does not answer ends no keeper)
                _log.warning("looking after generations failed", reason=reason_of(error), detail=str(error))
            rest = min((time.monotonic() - began) * _PART, _LONGEST)
            await asyncio.sleep(max(self._settings.interval, rest))

    async def look(self) -> None:
        """Do once what is to be done now. Raises ConflictError where another process does the same."""
        configured = self._target()
        target = await begin(self._registry, configured[0], origin=configured[1]) if configured else None
        await self._live.refresh()
        complete = set()
        for name, bundle in self._live.bundles.items():
            generation = self._of(bundle)
            answers = name == self._live.current_id
            generation.indexer.throttle.ease(1.0 if answers else self._settings.share)
            progress = await self._measure.measure(generation)
            if generation.started and progress.pending <= progress.files // _LAG:
                complete.add(name)
        if target is not None:
            await self._let_answer(target.id, complete)
        for record in (await self._registry.read()).generations:
            if record.state is GenerationState.BUILDING and record.id in complete:
                await self._registry.put(replace(record, state=GenerationState.READY))
        if configured is not None:
            await self._retire(generation_id(configured[0]))
        await self._remove()
        await self._live.refresh()

    async def _let_answer(self, target: str, complete: set[str]) -> None:
        """Let the configured model's generation answer, once: whoever moves the key back has the last word."""
        known = self._live.known
        record, current = known.get(target), known.current
        if record is None or record.state is GenerationState.DROPPING or target not in complete:
            return
        reconfigured = self._restarted and current.wanted != target
        if current.id != target and (record.state is GenerationState.BUILDING or reconfigured):
            await self._registry.move(target, wanted=target, expected=current)
            _log.info("the next generation answers from now on", generation=target, before=current.id)
        elif current.id == target and reconfigured:
            await self._registry.move(target, wanted=target, expected=current)

    async def _retire(self, target: str) -> None:
        """Note since when nobody wants a generation, and give up what nobody has wanted for long."""
        known = await self._registry.read()
        now = time.time()
        for each in known.generations:
            wanted = each.id in {known.current.id, target}
            if each.state is GenerationState.DROPPING:
                continue
            if wanted and each.retired is not None:
                await self._registry.put(replace(each, retired=None))
            elif not wanted and each.retired is None:
                await self._registry.put(replace(each, retired=now))
            elif (
                not wanted
                and self._settings.keep_days
                and now - (each.retired or now) > self._settings.keep_days * _DAY
            ):
                _log.info("a generation is given up: nobody has wanted it for long", generation=each.id)
                await give_up(self._registry, each)

    async def _remove(self) -> None:
        """Remove what was given up, once no process has it open."""
        await self._live.refresh()
        known = self._live.known
        for each in known.generations:
            if each.state is not GenerationState.DROPPING:
                continue
            if each.id == known.current.id:  # somebody has chosen it at the same moment
                await self._registry.put(replace(each, state=GenerationState.READY, retired=None))
                continue
            given_up = time.time() - (each.retired or 0.0)
            if each.id in self._live.bundles or self._live.busy or given_up < self._settings.drop_grace:
                continue
            await self._erase(each)
            await self._registry.remove(each)
            self._measure.forget(each.id)
            _log.info("a generation is removed", generation=each.id)
