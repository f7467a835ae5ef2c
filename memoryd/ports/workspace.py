"""The workspace: reading files, and comparing a folder with the file log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memoryd.domain.files import Problem
from memoryd.domain.names import Scope

UNREACHABLE = "UNREACHABLE"
"""Reason of a problem: the process that has the folder does not answer."""


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file as memory_get reads it: its text, the SHA-256 of its bytes, hex, and whether others may not see it.

    It is private by its path, by another name that it has, or by its front matter.
    """

    text: str
    hash: str
    private: bool


@dataclass(frozen=True, slots=True)
class FolderState:
    """How a workspace's folder is.

    Attributes:
        problem: why it can't be read now; None where it can.
        reconciled: when all its files were last read and compared with the file log, Unix seconds; 0: not since its
            process started, or that can't be reached.
    """

    problem: Problem | None
    reconciled: float = 0.0


class Workspace(Protocol):
    """Reading files of workspaces. Paths have passed `memoryd.domain.paths.check_path`."""

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        """Read a file; None where it does not exist or may not be read (hidden, a link that leaves, not Markdown)."""
        ...

    async def state(self, scope: Scope) -> FolderState:
        """Tell how the workspace's folder is."""
        ...

    async def sync(self, scope: Scope, timeout: float) -> int:
        """Compare the folder with the file log now and put what differs; returns how many states were put."""
        ...
