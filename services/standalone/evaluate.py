"""Evaluating: a retrieval set's documents become files of workspaces, and every query goes through the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from memoryd.domain.names import Scope
from memoryd.domain.queries import Mode, SearchQuery, SearchResult
from memoryd.errors import UnavailableError
from memoryd.evaluation.run import ModeReport, report, run_mode
from memoryd.evaluation.sets import RetrievalSet
from services.gateway.validation import MAX_QUERY
from services.search.legs import CUT_SHORT
from services.standalone.app import Standalone, open_standalone
from services.standalone.index import index_all
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import LOCAL_TENANT, WorkspaceSettings

_log = structlog.get_logger(__name__)

Report = Callable[[str, int, int], None]
# Nobody waits for these answers: a slow machine must not turn into degraded ones.
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class GatewayProduct:
    """Searches through the gateway's use case; a degraded answer is an error, as it would measure something else."""

    standalone: Standalone

    async def search(self, group: str, query: SearchQuery) -> Sequence[SearchResult]:
        """Search one group's workspace."""
        # Sets hold texts as queries that no agent would ask: their beginning is what the product can take.
        query = replace(query, text=query.text[:MAX_QUERY])
        found = await self.standalone.gateway.search(Scope(LOCAL_TENANT, group), query, timeout=_TIMEOUT)
        degraded = [entry for entry in found.answer.degraded if entry.reason != CUT_SHORT]
        if degraded or found.answer.pending:
            raise UnavailableError(f"the answer for {query.text!r} was degraded or stale: {degraded}")
        return found.answer.results


async def evaluate(
    data: RetrievalSet, folder: Path, settings: StandaloneSettings, modes: Sequence[Mode], progress: Report
) -> dict[Mode, ModeReport]:
    """Write the documents below `folder`, index them, and run every query in each mode."""
    await asyncio.to_thread(_write, data, folder)
    workspaces = tuple(WorkspaceSettings(path=folder / group, name=group) for group in data.groups)
    settings = settings.model_copy(update={"workspaces": workspaces})
    async with open_standalone(settings) as standalone:
        for workspace in workspaces:
            status = await index_all(standalone, workspace.scope, progress)
            for file in status.quarantined:  # it counts as never found
                _log.warning("document set aside", path=file.path, reason=file.problem.reason)
        product = GatewayProduct(standalone)
        reports = {}
        for mode in modes:
            outcomes = await run_mode(product, data, mode, partial(progress, f"{mode} search"))
            reports[mode] = report(data, outcomes)
        return reports


def _write(data: RetrievalSet, folder: Path) -> None:
    for document in data.documents:
        path = folder / document.group / document.path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = document.text.encode()
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
