"""How operators' commands reach an indexer: of a deployment, of a server that runs here, or in this process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.domain.names import Scope
from memoryd.endpoint import Endpoint, read_endpoint
from memoryd.errors import ConfigError, NotFoundError, listed

if TYPE_CHECKING:
    from memoryd.ports import Maintenance
    from services.standalone.settings import StandaloneSettings

_DEPLOYMENT = "MEMORYD_CLIENT_INDEXER"


@asynccontextmanager
async def reach_indexer(data_dir: Path | None, config: Path | None) -> AsyncIterator[Maintenance]:
    """Reach the indexer.

    Where MEMORYD_CLIENT_INDEXER is set (and no data directory or configuration is named), it is a deployment's, with
    the service credential of MEMORYD_SERVICE_…. Else it is the server that uses the data directory; where none does,
    the directory is opened here.
    """
    async with AsyncExitStack() as stack:
        if _DEPLOYMENT in os.environ and data_dir is None and config is None:
            yield await _of_deployment(stack)
            return
        from services.standalone.app import open_standalone  # noqa: PLC0415  (only what owns a directory needs services)
        from services.standalone.settings import load  # noqa: PLC0415

        settings = load(config, data_dir=data_dir, indexer={"repair": False})  # the command decides what is mended
        try:
            standalone = await stack.enter_async_context(open_standalone(settings))
        except ConfigError as error:
            if error.reason != "DATA_DIRECTORY_LOCKED":
                raise
            yield await _of_server(settings, error, stack)
        else:
            yield standalone.indexer


def chosen(known: Sequence[Scope], tenant: str, workspace: str) -> Sequence[Scope]:
    """Pick the workspace that is named, or all. Raises NotFoundError where nothing is known of it."""
    if not workspace:
        return known
    if (found := [scope for scope in known if (scope.tenant, scope.workspace) == (tenant, workspace)]) == []:
        raise NotFoundError(f"nothing is known of {tenant}/{workspace}; there are: {listed(map(str, known))}")
    return found


async def _of_deployment(stack: AsyncExitStack) -> Maintenance:
    from memoryd.adapters.grpc.indexing import GrpcIndexing  # noqa: PLC0415  (as above)
    from memoryd.adapters.grpc.remote import Remote  # noqa: PLC0415
    from memoryd.adapters.grpc.settings import ClientSettings  # noqa: PLC0415
    from memoryd.process.settings import read  # noqa: PLC0415
    from memoryd.server.credentials import ServiceCredentialSettings  # noqa: PLC0415

    remote = Remote("indexer", read(ClientSettings), read(ServiceCredentialSettings))
    stack.push_async_callback(remote.close)
    return GrpcIndexing(remote)


async def _of_server(settings: StandaloneSettings, locked: ConfigError, stack: AsyncExitStack) -> Maintenance:
    from pydantic import SecretStr  # noqa: PLC0415  (as above)

    from memoryd.adapters.grpc.indexing import GrpcIndexing  # noqa: PLC0415
    from memoryd.adapters.grpc.remote import Remote  # noqa: PLC0415
    from memoryd.adapters.grpc.settings import ClientSettings  # noqa: PLC0415
    from memoryd.server.credentials import ServiceCredentialSettings  # noqa: PLC0415

    endpoint: Endpoint | None = read_endpoint(settings.data_dir)
    if endpoint is None or not endpoint.operator:
        raise locked
    encrypted = endpoint.address.startswith("https://")
    authorities = os.environ.get("MEMORYD_CA") if encrypted else None
    remote = Remote(
        "indexer",
        ClientSettings(indexer=endpoint.address.removeprefix("https://")),
        ServiceCredentialSettings(
            tokens=(SecretStr(endpoint.operator),), ca=Path(authorities) if authorities else None
        ),
    )
    stack.push_async_callback(remote.close)
    return GrpcIndexing(remote)
