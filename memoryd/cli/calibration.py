"""Fitting a model's constants: what `memoryd model calibrate` and `memoryd eval --tune` do, and print."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from memoryd.cli.output import err, out
from memoryd.cli.progress import bar
from memoryd.domain.queries import ModelInfo
from memoryd.domain.scoring import COMMITTED, Scoring
from memoryd.errors import InvalidInputError
from memoryd.evaluation.calibrate import FEWEST, Fit, fit_way
from memoryd.evaluation.known_items import load_or_make
from memoryd.evaluation.observations import Recorded
from memoryd.evaluation.tune import Choice, chosen, tune
from memoryd.evaluation.ways import Way

if TYPE_CHECKING:
    from services.standalone.settings import StandaloneSettings


@dataclass(frozen=True, slots=True)
class Material:
    """What constants are fitted from: sets by name, what their queries found, and with which model."""

    sets: tuple[str, ...]
    model: ModelInfo
    queries: Sequence[Recorded]
    settings: StandaloneSettings

    @property
    def today(self) -> Scoring:
        """The constants that are used today."""
        return self.model.scoring or COMMITTED


def gather(folders: Sequence[Path], keep: Path | None, config: Path | None) -> Material:
    """Index the folders and ask their queries. Raises as the sets' readers and standalone do."""
    from services.standalone.recording import record  # noqa: PLC0415  (only these commands need the services)
    from services.standalone.settings import load  # noqa: PLC0415

    sets = [load_or_make(folder) for folder in folders]
    settings = load(config)
    with tempfile.TemporaryDirectory(prefix="memoryd-calibrate-") as temporary, bar(err) as progress:
        recording = asyncio.run(record(sets, (keep or Path(temporary)).resolve(), settings, progress))
    return Material(tuple(data.name for data in sets), recording.model, recording.queries, settings)


def fitted(material: Material, choices: Sequence[Choice]) -> tuple[Scoring, Mapping[Way, Fit]]:
    """Fit every way's calibration to the weights that were chosen; where too little was recorded, today's stays.

    Raises InvalidInputError where no way can be fitted.
    """
    today = material.today
    weights = chosen(choices, today.weights)
    fits = {
        way: fit
        for way in Way
        if (fit := fit_way(material.queries, way, weights, (today.weights, getattr(today, way.value))))
    }
    if not fits:
        raise InvalidInputError(
            f"{', '.join(material.sets)}: too few queries find their right document, or too few have no answer, "
            f"{FEWEST} of each are needed: name more sets, or a larger folder"
        )
    calibrations = {way.value: fit.calibration for way, fit in fits.items()}
    return replace(today, weights=weights, **calibrations), fits


def place_of(material: Material) -> Path:
    """Name the file that the model's constants belong into."""
    from services.embedder.scoring import scoring_place  # noqa: PLC0415  (as above)

    return scoring_place(material.settings.embedder, material.model)


def tuned(material: Material) -> list[Choice]:
    """Choose the weights of the order again."""
    return tune(material.queries, material.today.weights)


def choices_as_json(choices: Sequence[Choice], material: Material) -> dict[str, Any]:
    """Name what was found as it is published."""
    return {
        "choices": [
            asdict(choice)
            | {
                "folds": [
                    {**{name: getattr(weights, name) for name in choice.names}, "before": before, "after": after}
                    for weights, before, after in choice.folds
                ],
                "gains": choice.gains,
            }
            for choice in choices
        ],
        "weights": asdict(chosen(choices, material.today.weights)),
    }


def show_choices(choices: Sequence[Choice], material: Material) -> None:
    """Print what was found beside what is used today, and what to do with it."""
    for choice in choices:
        title = "fused order" if choice.way is Way.HYBRID else "order by token sketches"
        table = _table(f"{title}: nDCG@10", "constants", *choice.names, *choice.before, "mean")
        for what, weights, of_sets in (
            ("today's", choice.today, choice.before),
            ("all queries choose", choice.chosen, choice.after),
            ("held out", None, choice.held_out),
        ):
            named = [f"{getattr(weights, name):g}" if weights else "" for name in choice.names]
            values = list(of_sets.values())
            table.add_row(what, *named, *map(_f, values), _f(fmean(values)))
        if choice.reference is not None:
            values = list(choice.reference.values())
            blank = [""] * len(choice.names)
            table.add_row("reciprocal rank fusion", *blank, *map(_f, values), _f(fmean(values)))
        out.print(table)
        if choice.above is not None:
            low, high = choice.above
            out.print(f"today's against reciprocal rank fusion, a query: {low:+.4f} to {high:+.4f} (95 %)")
        table = _table("held-out folds: nDCG@10 of their queries", "chosen by the others", "today's", "these")
        for weights, before, after in choice.folds:
            told = ", ".join(f"{name} {getattr(weights, name):g}" for name in choice.names)
            table.add_row(told, _f(before), _f(after))
        out.print(table)
        verdict = "a gain" if choice.gains else "no gain beyond chance: today's stay"
        out.print(f"held out against today's, a query: {choice.low:+.4f} to {choice.high:+.4f} (95 %): {verdict}")
    found = chosen(choices, material.today.weights)
    if found != material.today.weights:
        told = ", ".join(f"{name} {value:g}" for name, value in asdict(found).items())
        out.print(f"to set: {told}", markup=False)
        sets = " ".join(material.sets)
        out.print(f"`memoryd model calibrate --tune {sets}` sets these, and fits the scores to them", markup=False)


def show_fits(fits: Mapping[Way, Fit]) -> None:
    """Print how well right chunks are told apart, by the constants of today and by the new ones."""
    kinds = list(dict.fromkeys(kind for fit in fits.values() for kind in (*fit.before.answered, *fit.after.answered)))
    table = _table(
        "right chunks kept, and shares answered without an answer; means over sets, new constants held out",
        "way",
        "constants",
    )
    for name in ("AUROC", "kept", *(f"{kind}" for kind in kinds)):
        table.add_column(name, justify="right", no_wrap=True)
    for way, fit in fits.items():
        for what, figures in (("today's", fit.before), ("new", fit.after)):
            answered = [_f(figures.answered.get(kind)) for kind in kinds]
            table.add_row(way.value, what, _f(figures.auroc), _f(figures.kept), *answered)
    out.print(table)
    worse = [way.value for way, fit in fits.items() if fit.after.auroc < fit.before.auroc]
    if worse:
        out.print(f"today's constants tell them apart better: {', '.join(worse)}; more queries may change that")
    few = [way.value for way in Way if way not in fits]
    if few:
        out.print(f"too few examples, as they were: {', '.join(few)}")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        left = column in {"way", "constants", "chosen by the others"}
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    return table


def _f(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
