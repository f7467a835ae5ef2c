"""The scope that another service names: it is believed, since the service's credential was checked."""

from __future__ import annotations

import structlog

from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError
from memoryd.server.calls import current


def named_scope(tenant: str, workspace: str) -> Scope:
    """Read the scope of the current call, and name it in the call's logs. Raises InvalidInputError."""
    try:
        scope = Scope(tenant, workspace)
    except ValueError as error:
        raise InvalidInputError(f"tenant, workspace: {error}", field="workspace") from error
    structlog.contextvars.bind_contextvars(tenant=tenant)
    current().facts["workspace"] = workspace
    return scope
