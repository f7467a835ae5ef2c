"""The outlines that a search sees, also while the manifest can't be asked."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from memoryd.breaker import Breaker
from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from memoryd.domain.queries import Freshness, Stage
from memoryd.domain.sealing import find
from memoryd.errors import MemorydError, UnavailableError
from memoryd.ports import FileLog, Manifest
from services.search.settings import SearchSettings
from services.search.stages import Stages

T = TypeVar("T")

# Workspaces whose last view is kept. It is the same object that the manifest's adapter keeps.
_SCOPES = 256


@dataclass(frozen=True, slots=True)
class Fixed:
    """The outlines that one search sees.

    Attributes:
        view: all of them, at one moment.
        pending: file changes that are not yet searchable; 0 where that is not known.
        current: whether the view was current when the search began; else it is the last one that was.
    """

    view: WorkspaceView
    pending: int
    current: bool


class Outlines:
    """Fixes the outlines for searches."""

    def __init__(self, manifest: Manifest, log: FileLog, consumer: str, settings: SearchSettings) -> None:
        self._manifest, self._log, self._consumer, self._settings = manifest, log, consumer, settings
        self._breaker = Breaker("manifest", settings.breaker_failures, settings.breaker_pause)
        self._last: OrderedDict[Scope, WorkspaceView] = OrderedDict()

    async def fix(self, scope: Scope, stages: Stages) -> Fixed:
        """Read what is pending, then the outlines; where they can't be read, take the last view that was current.

        Raises UnavailableError where there is none.
        """

        async def work(_: float) -> Fixed:
            pending = await self._log.pending(self._consumer, scope)
            return Fixed(await self._manifest.view(scope), pending, current=True)

        last = self._last.get(scope)
        fixed = await self._run(stages, work, "the outlines as they were last read, without what came later")
        if fixed is None:
            if last is None:
                raise UnavailableError(
                    "the outlines of this workspace can't be read, and were not read before: try again; "
                    "`memoryd status` shows what is down"
                )
            return Fixed(last, 0, current=False)
        self._last[scope] = fixed.view
        self._last.move_to_end(scope)
        if len(self._last) > _SCOPES:
            self._last.popitem(last=False)
        return fixed

    async def again(self, scope: Scope, stages: Stages) -> WorkspaceView | None:
        """Read the outlines afresh, for privacy flags; None where they can't be read."""

        async def work(_: float) -> WorkspaceView:
            return await self._manifest.view(scope)

        return await self._run(stages, work, "nothing: what may be shown to others can't be told")

    async def reached(self, scope: Scope, wanted: Freshness, stages: Stages) -> bool:
        """Wait until a revision of a file is visible or set aside; False where the wait is over first."""
        end = time.monotonic() + min(wanted.wait, stages.left / 2)
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + stages.left / 2):
                while not self._breaker.open:
                    view = await self._manifest.view(scope)
                    outline = find(view.outlines, wanted.path)
                    left = end - time.monotonic()
                    if outline is not None and outline.revision >= wanted.at_least:
                        return True
                    if left <= 0:
                        return False
                    await self._manifest.wait(scope, view.sequence, left)
        except (TimeoutError, MemorydError):
            pass
        return False

    async def _run(self, stages: Stages, work: Callable[[float], Awaitable[T]], instead: str) -> T | None:
        share = self._settings.outline_share
        return await stages.run(Stage.FUSE, work, share=share, instead=instead, breaker=self._breaker)
