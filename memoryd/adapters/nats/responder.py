"""Answering for workspaces, in the process that has their folders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import nats.errors
import orjson
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from memoryd import tracing
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.names import workspace_subject
from memoryd.domain.names import Scope
from memoryd.errors import MemorydError, ResourceExhaustedError, UnavailableError
from memoryd.ports import Workspace

_MOST = 32  # requests at once

_log = structlog.get_logger(__name__)


class Responder:
    """Answers what `NatsWorkspace` asks."""

    def __init__(self, connection: NatsConnection, workspace: Workspace) -> None:
        self._connection, self._workspace = connection, workspace
        self._subscriptions: list[Subscription] = []
        self._running: set[asyncio.Task[None]] = set()

    async def serve(self, prefix: str, scopes: Iterable[Scope]) -> None:
        """Begin to answer for some workspaces. A lost connection is taken up again by itself."""
        async with self._connection.answering():
            for scope in scopes:
                for call, work in (("state", self._state), ("sync", self._sync)):
                    subject = workspace_subject(prefix, scope, call)
                    answer = self._answering(scope, call, work)
                    # of several processes that have the folder, one answers
                    subscription = await self._connection.client.subscribe(subject, queue="workspace", cb=answer)
                    self._subscriptions.append(subscription)
            await self._connection.client.flush()

    async def close(self) -> None:
        """Answer no more; what is being answered is given up."""
        for subscription in self._subscriptions:
            with suppress(nats.errors.Error):  # the connection is closed already
                await subscription.unsubscribe()
        self._subscriptions.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _answering(
        self, scope: Scope, call: str, work: Callable[[Scope, float], Awaitable[dict[str, Any]]]
    ) -> Callable[[Msg], Awaitable[None]]:
        async def begin(request: Msg) -> None:
            # Not here: the client calls for one message at a time, and a look must not wait for a long comparison.
            full = len(self._running) >= _MOST
            task = asyncio.create_task(self._answer(scope, call, _refuse if full else work, request))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

        return begin

    async def _answer(
        self, scope: Scope, call: str, work: Callable[[Scope, float], Awaitable[dict[str, Any]]], request: Msg
    ) -> None:
        try:
            with tracing.serving("nats", f"workspace/{call}", request.headers or {}):
                answer = await work(scope, float(orjson.loads(request.data)["timeout"]))
        except MemorydError as error:
            answer = _failure(error)
        except Exception:  # noqa: BLE001  (whatever it was, who asked must not wait in vain)
            _log.exception("a request for a workspace failed", scope=str(scope), subject=request.subject)
            answer = _failure(UnavailableError(f"the workspace process of {scope} failed: see its log"))
        with suppress(MemorydError):  # who asked sees that the connection is lost
            async with self._connection.answering():
                await request.respond(orjson.dumps(answer))

    async def _state(self, scope: Scope, _timeout: float) -> dict[str, Any]:
        state = await self._workspace.state(scope)
        problem = state.problem
        return {"problem": problem and [problem.reason, problem.detail], "reconciled": state.reconciled}

    async def _sync(self, scope: Scope, timeout: float) -> dict[str, Any]:
        return {"put": await self._workspace.sync(scope, timeout)}


async def serve_workspace(
    connection: NatsConnection, prefix: str, workspace: Workspace, scopes: Iterable[Scope]
) -> Responder:
    """Answer for the workspaces of this process until the responder is closed."""
    responder = Responder(connection, workspace)
    await responder.serve(prefix, scopes)
    return responder


async def _refuse(scope: Scope, _timeout: float) -> dict[str, Any]:
    raise ResourceExhaustedError(f"the workspace process of {scope} is busy: try again later")


def _failure(error: MemorydError) -> dict[str, Any]:
    return {"error": {"kind": type(error).__name__, "reason": error.reason, "message": str(error)}}
