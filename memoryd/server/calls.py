"""The call being served, for the code below the interceptor."""

from __future__ import annotations

import re
import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from memoryd.errors import UnauthenticatedError
from memoryd.ports import Principal

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")

_current: ContextVar[Call] = ContextVar("memoryd_call")


@dataclass(slots=True)
class Call:
    """One call.

    Attributes:
        method: full name, with a leading slash.
        request_id: names the call in logs and to the caller.
        began: on `time.monotonic`'s clock.
        end: the deadline, on the same clock.
        facts: further fields of the call's log line; never a query's text, never a key.
    """

    method: str
    request_id: str
    began: float
    end: float
    facts: dict[str, object] = field(default_factory=dict)
    _principal: Principal | None = None

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(self.end - time.monotonic(), 0.0)

    def within(self, margin: float) -> float:
        """Seconds for work whose answer takes `margin` seconds to arrive; half of a time that is shorter than that."""
        return self.left - min(margin, self.left / 2)

    @property
    def principal(self) -> Principal:
        """Who calls. Raises UnauthenticatedError before that is known."""
        if self._principal is None:
            raise UnauthenticatedError("the call carries no credential")
        return self._principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        self._principal = principal


def current() -> Call:
    """Give the call being served; LookupError outside of one."""
    return _current.get()


def find() -> Call | None:
    """Give the call being served, where there is one."""
    return _current.get(None)


def begin(method: str, request_id: str, timeout: float) -> Call:
    """Begin a call of `timeout` seconds in this task. A request id that could confuse a log is replaced."""
    if not _REQUEST_ID.fullmatch(request_id):
        request_id = secrets.token_hex(8)
    now = time.monotonic()
    call = Call(method, request_id, began=now, end=now + timeout)
    _current.set(call)
    return call
