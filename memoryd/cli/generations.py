"""Commands about generations: `memoryd generations list`, `use`, `drop`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Column, Table

from memoryd.cli.local import Config, DataDir
from memoryd.cli.output import Json, err, out, print_json
from memoryd.generations.admin import GenerationStatus, statuses
from memoryd.generations.admin import drop as drop_generation
from memoryd.generations.admin import use as use_generation
from memoryd.ports import Generations

T = TypeVar("T")

# Characters of an id: `use` and `drop` take it from a table, so it is never cut.
_ID = 16

app = typer.Typer(help="Generations of the index: one for each model.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Its id, or the beginning of it.")]


@app.callback()
def _generations() -> None:
    """Generations: another model's index is built beside the one that answers, and takes over when it is complete.

    Where MEMORYD_NATS_URL is set (and no data directory or configuration is named), they are those of that deployment.
    """


@app.command(name="list")
def list_all(*, data_dir: DataDir = None, config: Config = None, as_json: Json = False) -> None:
    """Show all generations: their models, which one answers, and how far each is."""
    found = _run(statuses, data_dir, config)
    if as_json:
        print_json([_fields(each) for each in found])
        return
    table = Table(
        Column("generation", no_wrap=True, min_width=_ID), "model", "state", "files", "pending", "chunks", "ready in"
    )
    for each in found:
        progress = each.progress
        table.add_row(
            each.generation.id,
            each.generation.model.name,
            f"{each.generation.state}, answers" if each.current else str(each.generation.state),
            *((str(progress.files), str(progress.pending), str(progress.chunks)) if progress else ("", "", "")),
            ready_in(progress.pending, progress.eta) if progress else "",
        )
    out.print(table)
    for each in found:
        if each.progress and each.progress.problem:
            err.print(f"{each.generation.id}: {each.progress.problem}", style="yellow", markup=False)


@app.command()
def use(name: Name, *, data_dir: DataDir = None, config: Config = None, as_json: Json = False) -> None:
    """Let another generation answer, at once and without a restart: forth, or back again."""
    chosen = _run(lambda registry: use_generation(registry, name), data_dir, config)
    if as_json:
        print_json({"current": chosen.id})
        return
    out.print(f"{chosen.id} ({chosen.model.name}) answers from now on", markup=False)


@app.command()
def drop(name: Name, *, data_dir: DataDir = None, config: Config = None, as_json: Json = False) -> None:
    """Give a generation up; a running server removes it within seconds, else the next start does."""
    dropped = _run(lambda registry: drop_generation(registry, name), data_dir, config)
    if as_json:
        print_json({"dropped": dropped.id})
        return
    out.print(f"{dropped.id} ({dropped.model.name}) is being removed", markup=False)


def ready_in(pending: int, eta: float | None) -> str:
    """Say for a person when a generation is complete."""
    if not pending:
        return "now"
    if eta is None:
        return "?"
    return f"{eta:.0f} s" if eta < 120 else f"{eta / 60:.0f} min"  # noqa: PLR2004  (two minutes)


def _fields(status: GenerationStatus) -> dict[str, Any]:
    generation, progress = status.generation, status.progress
    return {
        "id": generation.id,
        "model": generation.model.name,
        "dimensions": generation.model.dimensions,
        "fingerprint": generation.model.fingerprint,
        "versions": dict(generation.versions),
        "state": generation.state.value,
        "current": status.current,
        "created": generation.created,
        "retired": generation.retired,
        "files": progress.files if progress else None,
        "pending": progress.pending if progress else None,
        "chunks": progress.chunks if progress else None,
        "progress": progress.done if progress else None,
        "eta": progress.eta if progress else None,
        "problem": progress.problem if progress else "",
    }


def _run(work: Callable[[Generations], Awaitable[T]], data_dir: Path | None, config: Path | None) -> T:
    async def run() -> T:
        on_nats = "MEMORYD_NATS_URL" in os.environ and data_dir is None and config is None
        async with _on_nats() if on_nats else _in(data_dir, config) as registry:
            return await work(registry)

    return asyncio.run(run())


@asynccontextmanager
async def _in(data_dir: Path | None, config: Path | None) -> AsyncIterator[Generations]:
    """The registry of a data directory, whether or not a server uses it now."""
    from services.standalone.registry import open_registry  # noqa: PLC0415  (only what owns a data directory needs it)
    from services.standalone.settings import load  # noqa: PLC0415

    async with open_registry(load(config, data_dir=data_dir).data_dir) as registry:
        yield registry


@asynccontextmanager
async def _on_nats() -> AsyncIterator[Generations]:
    from memoryd.adapters.nats.generations import NatsGenerations  # noqa: PLC0415  (as above)
    from memoryd.adapters.nats.settings import NatsSettings  # noqa: PLC0415
    from memoryd.process.settings import ProcessSettings, read  # noqa: PLC0415

    settings = read(NatsSettings)
    connection = await settings.connect("generations")
    try:
        registry = await NatsGenerations.open(connection, read(ProcessSettings).namespace, replicas=settings.replicas)
        yield registry
        await registry.close()
    finally:
        await connection.close()
