"""Commands about API keys: `memoryd key create`."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from memoryd.cli.local import Config, DataDir
from memoryd.cli.output import Json, err, out, print_json

app = typer.Typer(help="API keys.", no_args_is_help=True)


@app.callback()
def _keys() -> None:
    """API keys: random, bound to a tenant and its workspaces; only their hashes are kept."""


@app.command()
def create(
    *,
    workspace: Annotated[list[str], typer.Option("--workspace", "-w", help="A workspace it covers; repeatable.")],
    tenant: Annotated[str, typer.Option(help="The tenant that it belongs to.")] = "local",
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Mint a key for a tenant and some of its workspaces; it is shown once.

    Where MEMORYD_NATS_URL is set (and no data directory or configuration is named), it is one of that deployment.
    """
    covered = frozenset(workspace)
    if "MEMORYD_NATS_URL" in os.environ and data_dir is None and config is None:
        key = asyncio.run(_mint_on_nats(tenant, covered))
    else:
        from services.standalone.keys import mint  # noqa: PLC0415  (only what owns a data directory needs services)
        from services.standalone.settings import load  # noqa: PLC0415

        key = asyncio.run(mint(load(config, data_dir=data_dir).data_dir, tenant, covered))
    if as_json:
        print_json({"key": key, "tenant": tenant, "workspaces": sorted(workspace)})
        return
    out.print(key, markup=False)
    err.print("Keep it: only its hash is stored. Use it as MEMORYD_KEY.", style="dim")


async def _mint_on_nats(tenant: str, workspaces: frozenset[str]) -> str:
    from memoryd.adapters.nats.keys import NatsKeyStore  # noqa: PLC0415  (as above)
    from memoryd.adapters.nats.settings import NatsSettings  # noqa: PLC0415
    from memoryd.process.settings import ProcessSettings, read  # noqa: PLC0415

    settings = read(NatsSettings)
    connection = await settings.connect("key")
    try:
        keys = await NatsKeyStore.open(connection, read(ProcessSettings).namespace, replicas=settings.replicas)
        return await keys.create(tenant, workspaces)
    finally:
        await connection.close()
