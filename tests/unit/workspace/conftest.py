import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.domain.names import Scope
from services.workspace.service import WorkspaceService
from services.workspace.settings import WorkspaceServiceSettings
from tests.support.eventually import eventually

SCOPE = Scope("local", "notes")

# Short waits, and no reconcile by interval that could hide what the watcher missed.
SETTINGS = WorkspaceServiceSettings(debounce_ms=50, max_debounce_ms=200, check_ms=100, reconcile_seconds=3600)


class Folder:
    """A folder of Markdown, and what the file log holds of it."""

    def __init__(self, root: Path, log: SqliteFileLog) -> None:
        self.root = root
        self.log = log

    def write(self, path: str, text: str = "text\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    async def states(self) -> dict[str, str]:
        """Hold each path's text, or 'deleted', or the reason of its problem."""
        seen = {}
        for key in [logged.state.key async for logged in self.log.scan(SCOPE)]:
            logged = await self.log.get(key)
            assert logged is not None
            state = logged.state
            if state.content is not None:
                seen[key.path] = state.content.decode()
            else:
                seen[key.path] = state.problem.reason if state.problem else "deleted"
        return seen

    async def live(self) -> dict[str, str]:
        return {path: text for path, text in (await self.states()).items() if text != "deleted"}

    async def shows(self, wanted: dict[str, str]) -> None:
        """Wait until the log shows exactly these files and problems."""
        await eventually(self.live, wanted)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteFileLog]:
    log = await SqliteFileLog.open(tmp_path / "filelog.db")
    yield log
    await log.close()


@pytest.fixture
def folder(tmp_path: Path, log: SqliteFileLog) -> Folder:
    root = tmp_path / "root"
    root.mkdir()
    return Folder(root, log)


@pytest.fixture
async def service(folder: Folder) -> AsyncIterator[WorkspaceService]:
    """Not started: tests write their files first."""
    service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS)
    yield service
    async with asyncio.timeout(30):
        await service.close()
