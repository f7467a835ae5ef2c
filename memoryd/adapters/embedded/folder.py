"""Workspaces read straight from their folders on this machine."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from memoryd.domain.files import FileKey
from memoryd.domain.markdown.privacy import says_private
from memoryd.domain.names import Scope
from memoryd.domain.paths import is_private, is_transcript
from memoryd.domain.plans import BLOCKED
from memoryd.errors import NotFoundError
from memoryd.folder.listing import list_folder
from memoryd.folder.locating import Place, places
from memoryd.folder.reading import FileText, read_file
from memoryd.folder.root import RootMissingError
from memoryd.folder.rules import FolderRules
from memoryd.ports import FileLog, FolderState, WorkspaceFile


class Owner(Protocol):
    """The service that watches the folders: it alone writes the file log, and knows what it could not read."""

    async def sync(self, scope: Scope, timeout: float) -> int:
        """See `memoryd.ports.Workspace`."""
        ...

    async def state(self, scope: Scope) -> FolderState:
        """See `memoryd.ports.Workspace`."""
        ...


class FolderWorkspace:
    """Implements `memoryd.ports.Workspace`."""

    def __init__(
        self, roots: Mapping[Scope, Path], rules: Mapping[Scope, FolderRules], owner: Owner, log: FileLog
    ) -> None:
        self._roots = roots
        self._rules = rules
        self._owner = owner
        self._log = log

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        """Read a file; None also where it is set aside (too large, binary, unreadable) or on the block list."""
        root = self._root(scope)
        logged = await self._log.get(FileKey(scope, path))
        if logged and (problem := logged.state.problem) and problem.reason == BLOCKED:
            return None
        return await asyncio.to_thread(self._read, root, path, self._rules[scope])

    async def state(self, scope: Scope) -> FolderState:
        """Ask the watching service."""
        return await self._owner.state(scope)

    async def sync(self, scope: Scope, timeout: float) -> int:
        """Ask the watching service."""
        return await self._owner.sync(scope, timeout)

    def _root(self, scope: Scope) -> Path:
        root = self._roots.get(scope)
        if root is None:
            raise NotFoundError(f"no folder is configured for the workspace {scope}; add it to the configuration")
        return root

    def _read(self, root: Path, path: str, rules: FolderRules) -> WorkspaceFile | None:
        transcript = is_transcript(path)
        found = [
            (place, file)
            for place in places(root, path, rules)
            if (file := read_file(place.root, place.name, rules, transcript=transcript)) is not None
        ]
        if not found:
            return None
        place, file = found[0]
        if not isinstance(file, FileText):
            return None
        if any(not isinstance(other, FileText) or other.inode != file.inode for _, other in found):
            return None  # two files of one path, which the indexer sets aside
        private = (not transcript and says_private(file.text)) or _is_private(root, path, place, file, rules)
        return WorkspaceFile(file.text, file.hash, private)


def _is_private(root: Path, path: str, place: Place, file: FileText, rules: FolderRules) -> bool:
    """Whether any name of the file is private: another name must not be a way around it."""
    names = [path]
    if place.root == root:
        names.append(unicodedata.normalize("NFC", place.name))
    if any(is_private(each, rules.private) for each in names):
        return True
    if file.names == 1:
        return False
    try:
        listing = list_folder(root, rules)
    except RootMissingError:
        return True
    return any(
        found.private
        for found in listing.files.values()
        if (found.signature.device, found.signature.inode) == file.inode
    )
