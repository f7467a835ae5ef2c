"""Commands about API keys: `memoryd key create`."""

from __future__ import annotations

import asyncio
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
    """Mint a key for a tenant and some of its workspaces; it is shown once."""
    from services.standalone.keys import mint  # noqa: PLC0415  (only commands that own a data directory need services)
    from services.standalone.settings import load  # noqa: PLC0415

    settings = load(config, data_dir=data_dir)
    key = asyncio.run(mint(settings.data_dir, tenant, frozenset(workspace)))
    if as_json:
        print_json({"key": key, "tenant": tenant, "workspaces": sorted(workspace)})
        return
    out.print(key, markup=False)
    err.print("Keep it: only its hash is stored. Use it as MEMORYD_KEY.", style="dim")
