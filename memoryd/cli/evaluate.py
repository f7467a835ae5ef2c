"""The command `memoryd eval`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from memoryd.cli.calibration import choices_as_json, gather, show_choices, tuned
from memoryd.cli.evaluation import Plan, finish
from memoryd.cli.output import Json, Server, err, print_json
from memoryd.cli.progress import bar
from memoryd.client import MemorydClient, connect
from memoryd.domain.queries import Mode, Rerank
from memoryd.errors import InvalidInputError
from memoryd.evaluation.evaluate import evaluate as run
from memoryd.evaluation.known_items import load_or_make
from memoryd.evaluation.sets import RetrievalSet, write

Folders = Annotated[
    list[Path],
    typer.Argument(
        help="Sets (corpus.jsonl, queries.jsonl, qrels.tsv), or folders of Markdown: queries are made from these.",
        show_default=False,
    ),
]
Modes = Annotated[list[Mode] | None, typer.Option("--mode", help="text, vector or hybrid; repeatable; default: all.")]
Concurrency = Annotated[
    int, typer.Option(min=1, max=64, help="Queries in flight at once; latencies are an idle server's with 1 only.")
]
Reranked = Annotated[
    Rerank, typer.Option("--rerank", help="Whether the fused order is refined: off measures the legs and their fusion.")
]
Save = Annotated[Path | None, typer.Option(help="Write each query's nDCG@10 here, for later comparisons.")]
Compare = Annotated[Path | None, typer.Option(help="Compare with a saved run, query by query.")]
Gate = Annotated[
    Path | None, typer.Option(help="As --compare, and exit 1 where all queries together lost significantly.")
]

# Nobody waits for these answers: a slow machine must not turn into degraded ones.
_TIMEOUT = 60.0


def evaluate(  # noqa: PLR0913  (one parameter an option)
    folders: Folders,
    *,
    mode: Modes = None,
    server: Server = None,
    workspace: Annotated[
        str, typer.Option("--workspace", "-w", help="With --server: the workspace that holds the set's documents.")
    ] = "",
    write_to: Annotated[
        Path | None, typer.Option("--write", help="Only write the documents as files here, a workspace a folder.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the index here, and use it again: only what changed is indexed anew.")
    ] = None,
    concurrency: Concurrency = 1,
    rerank: Reranked = Rerank.AUTO,
    save: Save = None,
    compare: Compare = None,
    gate: Gate = None,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Only choose the constants of the order again, and print them beside today's."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure retrieval: ranking, lines, silence where there is no answer, and latency.

    Of a folder of Markdown it asks for what its headings, front matter and links say, and looks for their files.

    The documents are indexed and served for as long as it takes, or, with --server, by a server that holds them.
    """
    if tune:
        if server or write_to or save or compare or gate:
            raise InvalidInputError("--tune goes with --keep and --json alone: it needs an index of its own")
        material = gather(folders, keep, None)
        choices = tuned(material)
        if as_json:
            print_json(choices_as_json(choices, material))
        else:
            show_choices(choices, material)
        return
    sets = [load_or_make(folder) for folder in folders]
    if write_to:
        for data in sets:
            write(data, write_to)
        return
    plan = Plan.of(save=save, compare=compare, gate=gate, as_json=as_json)
    modes = mode or [Mode.TEXT, Mode.VECTOR, Mode.HYBRID]
    with tempfile.TemporaryDirectory(prefix="memoryd-eval-") as temporary, bar(err) as progress:

        def serving(data: RetrievalSet) -> AbstractAsyncContextManager[MemorydClient]:
            return _connected(server) if server else _standalone(data, (keep or Path(temporary)).resolve())

        reports = asyncio.run(
            run(sets, serving, modes, progress, workspace=workspace, concurrency=concurrency, rerank=rerank)
        )
    raise typer.Exit(finish(reports, plan))


@asynccontextmanager
async def _connected(server: str) -> AsyncIterator[MemorydClient]:
    async with connect(server, timeout=_TIMEOUT) as client:
        yield client


@asynccontextmanager
async def _standalone(data: RetrievalSet, home: Path) -> AsyncIterator[MemorydClient]:
    from services.standalone.evaluate import served  # noqa: PLC0415  (only these commands need the services)
    from services.standalone.settings import load as load_settings  # noqa: PLC0415

    settings = load_settings(data_dir=home / data.name / "data")
    async with served(data, home / data.name / "files", settings) as client:
        yield client
