"""How each adapter of the port `Workspace` is served from folders."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.folder import FolderWorkspace
from memoryd.domain.names import Scope
from memoryd.folder.rules import FolderRules
from memoryd.ports import Workspace
from services.workspace.service import WorkspaceService
from services.workspace.settings import WorkspaceServiceSettings


@asynccontextmanager
async def serve_folder(roots: Mapping[Scope, Path], rules: FolderRules, place: Path) -> AsyncIterator[Workspace]:
    """Read from the folders themselves; what else is needed is kept in `place`."""
    log = await SqliteFileLog.open(place / "filelog.db")
    service = WorkspaceService(roots, log, WorkspaceServiceSettings(), dict.fromkeys(roots, rules))
    yield FolderWorkspace(roots, dict.fromkeys(roots, rules), service, log)
    await service.close()
    await log.close()
