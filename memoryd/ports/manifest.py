"""The manifest: outlines, the commits of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline, WorkspaceView


class Manifest(Protocol):
    """The outlines. Bound to one generation."""

    async def outline(self, key: FileKey) -> Outline | None:
        """Read a file's outline, fresh."""
        ...

    async def commit(self, outline: Outline) -> Outline:
        """Put an outline if the entry is still `outline.entry` (0: none); returns it with its new entry.

        Raises ConflictError where another commit came first.
        """
        ...

    async def view(self, scope: Scope) -> WorkspaceView:
        """Fix the outlines of a workspace: an immutable snapshot, current when the call began."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have an outline."""
        ...

    async def wait(self, scope: Scope, after: int, timeout: float) -> int:
        """Wait until the workspace's sequence is greater than `after`, at most `timeout` seconds; returns it."""
        ...

    async def seal(self, outline: Outline) -> None:
        """Replace the path of a tombstone by its hash (`memoryd.domain.sealing`): a commit like any other.

        Raises ConflictError where another commit came first. `outline` by the path finds it as before.
        """
        ...
