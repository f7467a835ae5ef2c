"""A gate before every call of a port: a test decides which call goes on, fails, or never returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError

# Turns of the event loop without any call after which everybody waits at the gate.
_QUIET = 20


class Outcome(Enum):
    """What becomes of a call."""

    DONE = "done"
    REFUSED = "refused"  # fails without effect
    UNANSWERED = "unanswered"  # has its effect, but fails for the caller


@dataclass(frozen=True)
class Call:
    """A call of a port that went on."""

    actor: str
    name: str
    arguments: tuple[Any, ...]


@dataclass(eq=False)
class Waiting:
    """A call that waits at the gate."""

    actor: str
    name: str
    go: asyncio.Future[Outcome]


class Gate:
    """Open at first. While `stepping`, every call waits for `step`.

    Attributes:
        scope: the only workspace that `scopes` tells of: others on the same engines would only cost steps.
        stepping: whether calls wait.
        waiting: those that wait, in order of arrival.
        calls: those that went on.
        deliveries: what was fetched through the gate, without it.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.stepping = False
        self.waiting: list[Waiting] = []
        self.calls: list[Call] = []
        self.deliveries: list[Any] = []
        self._running = 0
        self._turns = 0

    async def call(self, call: Call, act: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401  (any port's answer)
        """Make a call when it may."""
        outcome = await self._pass(call)
        if outcome is Outcome.REFUSED:
            raise UnavailableError("refused by the test")
        self.calls.append(call)
        self._running += 1
        try:
            answer = await act()
        finally:
            self._running -= 1
            self._turns += 1
        if outcome is Outcome.UNANSWERED:
            raise UnavailableError("the answer was lost by the test")
        return answer

    async def _pass(self, call: Call) -> Outcome:
        self._turns += 1
        if not self.stepping:
            return Outcome.DONE
        waiting = Waiting(call.actor, call.name, asyncio.get_running_loop().create_future())
        self.waiting.append(waiting)
        try:
            return await waiting.go
        finally:
            if waiting in self.waiting:
                self.waiting.remove(waiting)

    async def step(self, waiting: Waiting, outcome: Outcome = Outcome.DONE) -> None:
        """Let one call go on, and wait until everybody waits again."""
        self.waiting.remove(waiting)
        waiting.go.set_result(outcome)
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until nobody can go on without the gate."""
        async with asyncio.timeout(30):
            calm, turns = 0, self._turns
            while calm < _QUIET:
                await asyncio.sleep(0)
                if self._running or turns != self._turns:
                    calm, turns = 0, self._turns
                else:
                    calm += 1

    def open(self) -> None:
        """Let everything go on from now on."""
        self.stepping = False
        for waiting in self.waiting:
            waiting.go.set_result(Outcome.DONE)
        self.waiting.clear()


class Gated:
    """A port behind the gate, as one actor sees it."""

    def __init__(self, port: Any, name: str, actor: str, gate: Gate) -> None:  # noqa: ANN401  (any port)
        self._port, self._name, self._actor, self._gate = port, name, actor, gate

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401  (whatever the port has)
        target = getattr(self._port, method)
        if not callable(target):
            return target

        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401  (as the port)
            what = Call(self._actor, f"{self._name}.{method}", args)
            if method == "scan":
                return self._pages(what, target(*args, **options))
            if method == "scopes":
                return self._scopes(what, target)
            if method == "fetch":
                return self._fetch(what, target, args, options)
            if method == "wait" and self._gate.stepping:  # as in `_fetch`
                return self._gate.call(what, lambda: target(*args[:-1], 0.0))
            return self._gate.call(what, lambda: target(*args, **options))

        return call

    async def _pages(self, what: Call, pages: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async def read() -> list[Any]:
            return [page async for page in pages]

        for page in await self._gate.call(what, read):
            yield page

    async def _scopes(self, what: Call, scopes: Callable[[], Awaitable[list[Scope]]]) -> list[Scope]:
        return [scope for scope in await self._gate.call(what, scopes) if scope == self._gate.scope]

    async def _fetch(
        self, what: Call, fetch: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> list[Any]:
        if self._gate.stepping:  # nobody is woken behind the gate
            options |= {"timeout": 0.0}

        async def lease() -> list[Any]:
            deliveries: list[Any] = await fetch(*args, **options)
            self._gate.deliveries += deliveries
            return deliveries

        deliveries = await self._gate.call(what, lease)
        return [Gated(delivery, "delivery", self._actor, self._gate) for delivery in deliveries]
