"""Indexing once: everything that the folders hold, then stop."""

from __future__ import annotations

from collections.abc import Callable

from memoryd.domain.generations import GenerationState
from memoryd.domain.names import Scope
from memoryd.errors import ResourceExhaustedError, UnavailableError
from memoryd.ports import IndexStatus
from memoryd.process.variables import warn_of_mistyped
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import StandaloneSettings

_LOOK = 0.1
# Between two looks of the keeper, each of which counts what is pending.
_INTERVAL = 0.5
# What passes by nothing that a command could wait for.
_HOPELESS = {"DISK_FULL"}


async def index_once(settings: StandaloneSettings, report: Callable[[str, int, int], None]) -> list[IndexStatus]:
    """Index until nothing is pending; `report` is called with a workspace, files done and files in all.

    Raises UnavailableError where a folder can't be read.
    """
    warn_of_mistyped(StandaloneSettings)
    async with open_standalone(at_full_speed(settings)) as standalone:
        await until_switched(standalone, report)
        return [await index_all(standalone, workspace.scope, report) for workspace in settings.workspaces]


def at_full_speed(settings: StandaloneSettings) -> StandaloneSettings:
    """Somebody waits for the indexing, and nobody searches meanwhile: no throttle, and no long looks."""
    generations = settings.generations.model_copy(update={"share": 1.0, "interval": _INTERVAL})
    return settings.model_copy(update={"generations": generations})


async def until_switched(standalone: Standalone, report: Callable[[str, int, int], None]) -> None:
    """Wait until the configured model's generation answers, where it is being built beside an older one."""
    target = standalone.configured
    while True:
        known = await standalone.generations.read()
        record = known.get(target)
        built = record is not None and record.state is GenerationState.READY and known.current.wanted == target
        if (built or known.current.id == target) and standalone.live.current_id == known.current.id:
            return
        progress = await standalone.generations.progress(target)
        if record is not None and progress is not None:
            report(f"indexing for model {record.model.name}", progress.files - progress.pending, progress.files)
        await standalone.generations.wait(known.sequence, _LOOK)


async def index_all(
    standalone: Standalone, scope: Scope, report: Callable[[str, int, int], None], *, patient: bool = False
) -> IndexStatus:
    """Wait until a workspace is indexed, and report how far it is.

    Raises ResourceExhaustedError where the disk is full, unless `patient`: a server goes on trying.
    """
    problem = (await standalone.workspaces.state(scope)).problem
    if problem is not None:
        raise UnavailableError(problem.detail, reason=problem.reason)
    total = 0
    async for status in standalone.indexer.progress(scope):
        failure = status.failure
        if status.pending and failure is not None and failure.ongoing and failure.reason in _HOPELESS and not patient:
            raise ResourceExhaustedError(f"{scope.workspace} can't be indexed: {failure.detail}", reason=failure.reason)
        total = max(total, status.pending)
        report(f"indexing {scope.workspace}", total - status.pending, total)
    return status
