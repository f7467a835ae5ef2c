"""Mending: every defect is mended by a state that is put into the file log, so by the indexer and its rules alone."""

from __future__ import annotations

import time
from dataclasses import replace

from memoryd.domain.files import FileKey, FileState, Problem
from memoryd.domain.names import Scope
from memoryd.domain.plans import BLOCKED
from memoryd.domain.repairs import Checkup, Defect, Finding, Treatment
from memoryd.errors import ConflictError, MemorydError
from memoryd.ports import FileLog, Manifest, Workspace

# Only the owner of the folder can tell whether these are gone, or not yet put again.
_UNLOGGED = {Defect.NOT_LOGGED, Defect.ORPHANED}
_AWAY = "the log does not know it, and its folder can't be asked whether it is gone: {}"
_EMPTY = (
    "the log does not know it, and its folder holds no file at all: bring the folder's files back, or purge the "
    "workspace"
)


class Mender:
    """Mends what an inspection found."""

    def __init__(self, *, log: FileLog, manifest: Manifest, workspace: Workspace | None, timeout: float) -> None:
        """Take the ports. `timeout`: seconds that a workspace's owner may take to compare its folder."""
        self._log, self._manifest, self._workspace, self._timeout = log, manifest, workspace, timeout

    async def mend(self, checkup: Checkup) -> Checkup:
        """Mend; returns the same findings with what was done."""
        if not checkup.findings:
            return checkup
        why_not = ""
        if any(finding.defect in _UNLOGGED for finding in checkup.findings):
            why_not = await self._ask_owner(checkup.scope)
        treated = [await self._treat(checkup.scope, finding, why_not) for finding in checkup.findings]
        return replace(checkup, findings=tuple(treated))

    async def _ask_owner(self, scope: Scope) -> str:
        """Have the owner compare its folder with the log; returns why nothing may be concluded, empty where it may.

        A log that was lost knows nothing of the folder's files until their owner has put them again. And a folder
        that holds nothing may be a volume that is not mounted: deletions can't be taken back.
        """
        if self._workspace is None:
            return _AWAY.format("no folder is reached from here")
        try:
            await self._workspace.sync(scope, self._timeout)
        except MemorydError as error:
            return _AWAY.format(error)
        async for file in self._log.scan(scope):
            if not file.state.deleted:
                return ""
        return _EMPTY

    async def _treat(self, scope: Scope, finding: Finding, why_not: str) -> Finding:
        key = FileKey(scope, finding.path)
        if finding.defect in _UNLOGGED and why_not and await self._log.get(key) is None:
            return replace(finding, treatment=Treatment.LEFT, detail=why_not)
        try:
            if finding.defect is Defect.BLOCK_LOST:
                treatment = await self._block(key)
            elif finding.defect in _UNLOGGED:
                treatment = await self._bury(key)
            else:
                treatment = await self._queue(key)
        except ConflictError:  # a newer state has come, and is in the queue
            treatment = Treatment.PASSED
        return replace(finding, treatment=treatment)

    async def _queue(self, key: FileKey) -> Treatment:
        logged = await self._log.get(key)
        if logged is None:
            return Treatment.PASSED
        await self._log.put(logged.state, expected=logged.revision, live=False)
        return Treatment.QUEUED

    async def _bury(self, key: FileKey) -> Treatment:
        if await self._log.get(key) is not None:  # its owner has put it again
            return Treatment.QUEUED
        await self._log.put(FileState.deletion(key, time.time()), expected=None, live=False)
        return Treatment.TOMBSTONED

    async def _block(self, key: FileKey) -> Treatment:
        outline = await self._manifest.outline(key)
        if outline is None or outline.problem is None:
            return Treatment.PASSED
        logged = await self._log.get(key)
        state = blocked_state(key, outline.problem)
        await self._log.put(state, expected=logged.revision if logged else None, live=False)
        return Treatment.QUEUED


def blocked_state(key: FileKey, problem: Problem | None = None) -> FileState:
    """Make the state that keeps a file from being indexed."""
    problem = problem or Problem(BLOCKED, "it is on the block list: `memoryd purge --unblock` takes it off")
    return FileState(key=key, hash="", content=None, modified=time.time(), private=True, problem=problem)
