"""The workspaces' folders at the start: one that never was there is a mistake, one that was may come back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

from memoryd.domain.names import Scope
from memoryd.errors import ConfigError
from memoryd.folder.root import RootMissingError, identify_root
from services.workspace.settings import WorkspaceSettings


async def refuse_absent(workspaces: Sequence[WorkspaceSettings], known: Collection[Scope]) -> None:
    """Raise ConfigError where a workspace that the file log does not know has no folder.

    Of one that is `known` a missing folder is an alarm: a volume that is not mounted yet, say.
    """
    new = [workspace.path for workspace in workspaces if workspace.scope not in known]
    wrong = await asyncio.to_thread(lambda: [problem for path in new if (problem := _problem(path))])
    if wrong:
        raise ConfigError(f"{'; '.join(wrong)}: make the folder, or correct its path")


def _problem(folder: Path) -> str:
    try:
        identify_root(folder)
    except RootMissingError as error:
        return f"{folder} {error}"
    return ""
