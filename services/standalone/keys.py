"""API keys of a standalone: minted on request, and one that the local command line finds by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.filelog import logged_scopes
from memoryd.adapters.embedded.keys import SqliteKeyStore
from memoryd.domain.names import Scope
from memoryd.endpoint import Endpoint, read_endpoint, write_endpoint
from memoryd.errors import ConfigError
from memoryd.ports import KeyStore
from services.standalone.settings import StandaloneSettings


async def mint(data_dir: Path, tenant: str, workspaces: frozenset[str]) -> str:
    """Mint a key in a data directory, whether or not a server uses it now."""
    async with _store(data_dir) as keys:
        return await keys.create(tenant, workspaces)


async def known_scopes(settings: StandaloneSettings) -> set[Scope]:
    """Find the workspaces that are configured, were served last or have a file in the log."""
    found = {workspace.scope for workspace in settings.workspaces}
    last = read_endpoint(settings.data_dir)
    async with _store(settings.data_dir) as keys:
        if last and (principal := await keys.principal(last.key)):
            found |= {Scope(principal.tenant, workspace) for workspace in principal.workspaces}
    return found | set(await logged_scopes(settings.data_dir / "filelog.db"))


@asynccontextmanager
async def _store(data_dir: Path) -> AsyncIterator[SqliteKeyStore]:
    try:
        DataDirectory.open(data_dir).close()
    except ConfigError as error:
        if error.reason != "DATA_DIRECTORY_LOCKED":
            raise
    keys = await SqliteKeyStore.open(data_dir / "keys.db")
    try:
        yield keys
    finally:
        await keys.close()


async def leave_endpoint(settings: StandaloneSettings, keys: KeyStore, address: str, operator: str = "") -> None:
    """Write where the server is and a key for the first workspace's tenant; the last start's key is used again.

    `operator` is the credential for its maintenance calls, new at each start.
    """
    if not settings.workspaces:
        return
    tenant = settings.workspaces[0].scope.tenant
    covered = frozenset(workspace.scope.workspace for workspace in settings.workspaces if workspace.tenant == tenant)
    last = read_endpoint(settings.data_dir)
    principal = await keys.principal(last.key) if last else None
    if last and principal and (principal.tenant, principal.workspaces) == (tenant, covered):
        key = last.key
    else:
        key = await keys.create(tenant, covered)
        if principal:
            await keys.revoke(principal.key_id)
    write_endpoint(settings.data_dir, Endpoint(address, key, operator))
