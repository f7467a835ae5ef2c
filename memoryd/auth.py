"""Who calls, and which workspace the call may touch."""

from __future__ import annotations

from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError, PermissionDeniedError, UnauthenticatedError, listed, shown
from memoryd.ports import KeyStore, Principal


async def authenticate(keys: KeyStore, authorization: str) -> Principal:
    """Find who an `authorization` value, "Bearer KEY", belongs to. Raises UnauthenticatedError."""
    key = bearer(authorization)
    if not key:
        raise UnauthenticatedError("the call carries no API key: send the metadata entry `authorization: Bearer KEY`")
    principal = await keys.principal(key)
    if principal is None:
        raise UnauthenticatedError("the API key is not known: check it, or make one with `memoryd key create`")
    return principal


def bearer(authorization: str) -> str:
    """Take the secret out of an `authorization` value, "Bearer SECRET"; empty where there is none."""
    scheme, _, secret = authorization.strip().partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def resolve_scope(principal: Principal, workspace: str) -> Scope:
    """Find the workspace that a call is about; an empty name means the key's only one. The tenant is the key's.

    Raises InvalidInputError where the name is needed, PermissionDeniedError where the key does not cover it. Whether a
    workspace exists that it does not cover can't be told from the error.
    """
    if not workspace:
        if len(principal.workspaces) != 1:
            raise InvalidInputError(
                f"workspace: empty, but the key covers {len(principal.workspaces)}; name one of them: "
                f"{listed(principal.workspaces)}",
                field="workspace",
            )
        (workspace,) = principal.workspaces
    if workspace not in principal.workspaces:
        raise PermissionDeniedError(
            f"workspace: the key does not cover {shown(workspace)}; it covers {listed(principal.workspaces)}"
        )
    return Scope(principal.tenant, workspace)
