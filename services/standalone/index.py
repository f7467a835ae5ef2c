"""Indexing once: everything that the folders hold, then stop."""

from __future__ import annotations

from collections.abc import Callable

from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError
from memoryd.ports import IndexStatus
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import StandaloneSettings


async def index_once(settings: StandaloneSettings, report: Callable[[str, int, int], None]) -> list[IndexStatus]:
    """Index until nothing is pending; `report` is called with a workspace, files done and files in all.

    Raises UnavailableError where a folder can't be read.
    """
    async with open_standalone(settings) as standalone:
        return [await index_all(standalone, workspace.scope, report) for workspace in settings.workspaces]


async def index_all(standalone: Standalone, scope: Scope, report: Callable[[str, int, int], None]) -> IndexStatus:
    """Wait until a workspace is indexed, and report how far it is."""
    problem = await standalone.workspaces.problem(scope)
    if problem is not None:
        raise UnavailableError(problem.detail, reason=problem.reason)
    total = 0
    async for status in standalone.indexer.progress(scope):
        total = max(total, status.pending)
        report(f"indexing {scope.workspace}", total - status.pending, total)
    return status
