"""Commands about API keys: `memoryd key create`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from memoryd.cli.local import Config, DataDir
from memoryd.cli.output import Json, err, out, print_json
from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError, listed

app = typer.Typer(help="API keys.", no_args_is_help=True)


@app.callback()
def _keys() -> None:
    """API keys: random, bound to a tenant and its workspaces; only their hashes are kept."""


@app.command()
def create(
    *,
    workspace: Annotated[list[str], typer.Option("--workspace", "-w", help="A workspace it covers; repeatable.")],
    tenant: Annotated[str, typer.Option(help="The tenant that it belongs to.")] = "local",
    new: Annotated[bool, typer.Option("--new", help="Also for a workspace that nothing is known of yet.")] = False,
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Mint a key for a tenant and some of its workspaces; it is shown once.

    Where MEMORYD_NATS_URL is set (and no data directory or configuration is named), it is one of that deployment.
    """
    covered = frozenset(workspace)
    if "MEMORYD_NATS_URL" in os.environ and data_dir is None and config is None:
        key = asyncio.run(_mint_on_nats(tenant, covered, new=new))
    else:
        key = asyncio.run(_mint(tenant, covered, data_dir, config, new=new))
    if as_json:
        print_json({"key": key, "tenant": tenant, "workspaces": sorted(workspace)})
        return
    out.print(key, markup=False)
    err.print("Keep it: only its hash is stored. Use it as MEMORYD_KEY.", style="dim")


async def _mint(
    tenant: str, workspaces: frozenset[str], data_dir: Path | None, config: Path | None, *, new: bool
) -> str:
    from services.standalone.keys import known_scopes, mint  # noqa: PLC0415  (only what owns a directory needs services)
    from services.standalone.settings import load  # noqa: PLC0415

    settings = load(config, data_dir=data_dir)
    if not new:
        _check(tenant, workspaces, await known_scopes(settings))
    return await mint(settings.data_dir, tenant, workspaces)


async def _mint_on_nats(tenant: str, workspaces: frozenset[str], *, new: bool) -> str:
    from memoryd.adapters.nats.filelog import logged_scopes  # noqa: PLC0415  (as above)
    from memoryd.adapters.nats.keys import NatsKeyStore  # noqa: PLC0415
    from memoryd.adapters.nats.settings import NatsSettings  # noqa: PLC0415
    from memoryd.process.settings import ProcessSettings, read  # noqa: PLC0415

    settings, namespace = read(NatsSettings), read(ProcessSettings).namespace
    connection = await settings.connect("key")
    try:
        if not new:
            _check(tenant, workspaces, await logged_scopes(connection, namespace))
        keys = await NatsKeyStore.open(connection, namespace, replicas=settings.replicas)
        return await keys.create(tenant, workspaces)
    finally:
        await connection.close()


def _check(tenant: str, workspaces: Iterable[str], known: Collection[Scope]) -> None:
    """Refuse a key for nobody, which is a mistyped name; before the first workspace is there, none can be told so."""
    names = {str(scope) for scope in known}
    if names and (wrong := {f"{tenant}/{name}" for name in workspaces} - names):
        raise InvalidInputError(
            f"--workspace: nothing is known of {listed(wrong)}; there are: {listed(names)}. "
            "For one that is still to come, add --new",
            field="workspace",
        )
