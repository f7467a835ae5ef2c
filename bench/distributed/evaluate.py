"""`python -m bench.distributed.evaluate SET…`: `memoryd eval` over the gateway of six processes that hold the sets."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import typer

from bench.distributed.deployment import six_processes
from memoryd.cli.evaluate import Compare, Concurrency, Folders, Gate, Modes, Reranked, Save
from memoryd.cli.evaluation import Plan, finish
from memoryd.cli.output import Json, err
from memoryd.cli.progress import bar
from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.domain.queries import Mode, Rerank
from memoryd.evaluation.evaluate import Reports, evaluate
from memoryd.evaluation.known_items import load_or_make
from memoryd.evaluation.sets import RetrievalSet, workspace_name, write
from memoryd.logs import LogSettings, configure


def main(
    folders: Folders,
    *,
    mode: Modes = None,
    concurrency: Concurrency = 1,
    rerank: Reranked = Rerank.AUTO,
    save: Save = None,
    compare: Compare = None,
    gate: Gate = None,
    as_json: Json = False,
) -> None:
    """Evaluate sets in six processes: each set is a tenant of its own, as it is an index of its own in standalone."""
    configure(LogSettings(level="warning"))
    modes = mode or [Mode.TEXT, Mode.VECTOR, Mode.HYBRID]
    plan = Plan.of(save=save, compare=compare, gate=gate, as_json=as_json)
    reports = asyncio.run(_run([load_or_make(folder) for folder in folders], modes, concurrency, rerank))
    raise typer.Exit(finish(reports, plan))


async def _run(sets: list[RetrievalSet], modes: list[Mode], concurrency: int, rerank: Rerank) -> Reports:
    with tempfile.TemporaryDirectory(prefix="memoryd-eval-") as temporary, bar(err) as progress:
        root = Path(temporary)
        async with six_processes(root) as six:

            @asynccontextmanager
            async def serving(data: RetrievalSet) -> AsyncIterator[MemorydClient]:
                place = root / "files" / data.name
                await asyncio.to_thread(write, data, place)
                tenant = workspace_name(data.name)
                async with six.workspaces({Scope(tenant, group): place / group for group in data.groups}) as running:
                    yield running.client

            return await evaluate(sets, serving, modes, progress, concurrency=concurrency, rerank=rerank)


if __name__ == "__main__":
    typer.run(main)
