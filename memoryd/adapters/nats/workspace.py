"""Workspaces whose folders are on another machine: read from the file log, and ask the process that has the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nats.errors
import orjson

from memoryd import tracing
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.names import workspace_subject
from memoryd.domain.files import FileKey, Problem
from memoryd.domain.markdown.privacy import says_private
from memoryd.domain.names import Scope
from memoryd.errors import DeadlineExceededError, MemorydError, NotFoundError, UnavailableError
from memoryd.ports import WorkspaceFile
from memoryd.ports.workspace import UNREACHABLE, FolderState


class NobodyAnswersError(Exception):
    """No process serves the workspace now."""


class NatsWorkspace:
    """The port `Workspace`. Files can be read while the machine that has the folder is off."""

    def __init__(self, connection: NatsConnection, prefix: str, log: NatsFileLog) -> None:
        self._connection, self._prefix, self._log = connection, prefix, log

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        """Read a file as the file log holds it; None also where it is set aside."""
        logged = await self._log.get(FileKey(scope, path))
        if logged is None:
            await self._check_known(scope)
            return None
        state = logged.state
        if state.content is None:
            return None
        text = state.content.decode()
        return WorkspaceFile(text, state.hash, state.private or says_private(text))

    async def state(self, scope: Scope) -> FolderState:
        """Ask the process that has the folder."""
        try:
            answer = await self._ask(scope, "state", self._connection.timeout)
        except NobodyAnswersError:
            if not await self._log.holds(scope):
                raise _unknown(scope) from None
            return FolderState(Problem(UNREACHABLE, f"the workspace process of {scope} can't be reached: start it"))
        problem = answer["problem"]
        return FolderState(None if problem is None else Problem(*problem), float(answer["reconciled"]))

    async def sync(self, scope: Scope, timeout: float) -> int:
        """Ask the process that has the folder. Raises UnavailableError where none answers."""
        try:
            answer = await self._ask(scope, "sync", timeout)
        except NobodyAnswersError:
            if not await self._log.holds(scope):
                raise _unknown(scope) from None
            raise UnavailableError(
                f"the workspace process of {scope} can't be reached: start it", reason=UNREACHABLE
            ) from None
        return int(answer["put"])

    async def _check_known(self, scope: Scope) -> None:
        """Raise NotFoundError for a workspace that nobody serves and that has no file in the log."""
        if await self._log.holds(scope):
            return
        try:
            await self._ask(scope, "state", self._connection.timeout)
        except NobodyAnswersError:
            raise _unknown(scope) from None

    async def _ask(self, scope: Scope, call: str, timeout: float) -> Mapping[str, Any]:
        subject = workspace_subject(self._prefix, scope, call)
        with tracing.calling("nats", f"workspace/{call}") as span:
            return await self._request(scope, subject, timeout, dict(span.metadata))

    async def _request(self, scope: Scope, subject: str, timeout: float, headers: dict[str, str]) -> Mapping[str, Any]:
        request = orjson.dumps({"timeout": timeout})
        losses = self._connection.losses
        try:
            async with self._connection.answering(timeout):
                try:
                    reply = await self._connection.client.request(
                        subject, request, timeout=timeout, headers=headers or None
                    )
                except nats.errors.NoRespondersError as error:
                    raise NobodyAnswersError from error
        except UnavailableError as error:
            if losses != self._connection.losses or not self._connection.client.is_connected:
                raise
            raise DeadlineExceededError(
                f"the workspace process of {scope} did not answer within {timeout:g} s; it may go on by itself"
            ) from error
        answer: dict[str, Any] = orjson.loads(reply.data)
        if failure := answer.get("error"):
            raise _error(failure)
        return answer


def _unknown(scope: Scope) -> NotFoundError:
    return NotFoundError(f"no workspace process serves {scope}, and it never had a file; check its name")


def _error(failure: Mapping[str, str]) -> MemorydError:
    """Make the error again that the other process raised."""
    kinds = {kind.__name__: kind for kind in MemorydError.__subclasses__()}
    return kinds.get(failure["kind"], UnavailableError)(failure["message"], reason=failure["reason"])
