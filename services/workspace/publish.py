"""Putting file states of one workspace into the file log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision
from memoryd.domain.names import Scope
from memoryd.domain.plans import BLOCKED
from memoryd.errors import ConflictError, InvalidInputError
from memoryd.ports import FileLog
from services.workspace.metrics import STATES_PUT
from services.workspace.observe import Observed

_ATTEMPTS = 8


class Publisher:
    """Remembers what the file log holds of a workspace, without contents, and puts what differs."""

    def __init__(self, scope: Scope, log: FileLog) -> None:
        self._scope = scope
        self._log = log
        self._last: dict[str, LoggedFile] = {}

    async def load(self) -> None:
        """Read what the log holds now."""
        self._last = {logged.state.key.path: logged async for logged in self._log.scan(self._scope)}

    def revision(self, path: str) -> Revision | None:
        """Give the last known revision of a file; None where it was never logged."""
        logged = self._last.get(path)
        return None if logged is None else logged.revision

    def present(self) -> list[str]:
        """List the files that the log does not know as deleted."""
        return [path for path, logged in self._last.items() if not logged.state.deleted]

    async def put(
        self, path: str, look: Callable[[], Awaitable[Observed | None]], *, live: bool
    ) -> tuple[bool, Observed | None]:
        """Look at a file and put its state, if it differs from the last one; tells whether, and what was seen.

        Looks again after a lost race, so an older look never overwrites a newer one. Raises ConflictError where every
        race is lost.
        """
        key = FileKey(self._scope, path)
        for _ in range(_ATTEMPTS):
            observed = await look()
            if observed is None or not self._differs(observed.state):
                return False, observed
            state = observed.state
            try:
                try:
                    revision = await self._log.put(state, expected=self.revision(path), live=live)
                except InvalidInputError as error:  # the log does not take so much
                    state = replace(state, hash="", content=None, problem=Problem(error.reason, str(error)))
                    if not self._differs(state):
                        return False, observed
                    revision = await self._log.put(state, expected=self.revision(path), live=live)
            except ConflictError:
                await self._reload(key)
                continue
            self._remember(LoggedFile(state, revision))
            STATES_PUT.labels(_kind(state)).inc()
            return True, observed
        raise ConflictError(
            f"{path} of {self._scope} was put by somebody else {_ATTEMPTS} times in a row; "
            "serve each workspace's folder by one process"
        )

    def _differs(self, state: FileState) -> bool:
        last = self._last.get(state.key.path)
        if last is not None and last.state.problem is not None and last.state.problem.reason == BLOCKED:
            return False  # only the operator who blocked the file may put another state
        return not state.deleted if last is None else not last.state.same_as(state)

    async def _reload(self, key: FileKey) -> None:
        logged = await self._log.get(key)
        if logged is None:
            self._last.pop(key.path, None)
        else:
            self._remember(logged)

    def _remember(self, logged: LoggedFile) -> None:
        state = replace(logged.state, content=None)
        self._last[state.key.path] = LoggedFile(state, logged.revision)


def _kind(state: FileState) -> str:
    if state.deleted:
        return "deletion"
    return "problem" if state.problem else "file"
