"""The command `memoryd eval`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from memoryd.cli.output import Json, err, out, print_json
from memoryd.cli.progress import bar
from memoryd.domain.queries import Mode
from memoryd.evaluation.run import ModeReport
from memoryd.evaluation.sets import load


def evaluate(
    folder: Annotated[Path, typer.Argument(help="A set: corpus.jsonl, queries.jsonl, qrels.tsv.")],
    *,
    mode: Annotated[list[Mode] | None, typer.Option(help="text, vector or hybrid; repeatable; default: all.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the index here, and use it again: only what changed is indexed anew.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure retrieval through the product: recall@5, nDCG@10, MRR@10, line hits, answers that should be none."""
    from services.standalone import evaluate as run  # noqa: PLC0415  (only these commands need the services)
    from services.standalone.settings import load as load_settings  # noqa: PLC0415

    data = load(folder)
    modes = mode or [Mode.TEXT, Mode.VECTOR, Mode.HYBRID]
    with tempfile.TemporaryDirectory(prefix="memoryd-eval-") as temporary, bar(err) as report:
        home = (keep or Path(temporary)).resolve() / data.name
        settings = load_settings(data_dir=home / "data")
        reports = asyncio.run(run.evaluate(data, home / "files", settings, modes, report))
    if as_json:
        result: dict[str, Any] = {"set": data.name}
        print_json(result | {mode.value: figures.as_json() for mode, figures in reports.items()})
    else:
        out.print(_table(data.name, reports))


def _table(name: str, reports: dict[Mode, ModeReport]) -> Table:
    table = Table(title=name, title_justify="left")
    columns = next(list(figures.as_json()) for figures in reports.values())
    for column in ("mode", *columns):
        # Words wrap where a terminal is narrow, where underscores would be cut off.
        table.add_column(column.replace("_", " "), justify="left" if column == "mode" else "right")
    for mode, figures in reports.items():
        cells = [
            "–" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
            for value in figures.as_json().values()
        ]
        table.add_row(mode.value, *cells)
    return table
