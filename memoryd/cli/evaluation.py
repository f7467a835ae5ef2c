"""What an evaluation prints and leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich import box
from rich.table import Table

from memoryd.cli.output import err, out, print_json
from memoryd.domain.queries import Mode
from memoryd.errors import InvalidInputError
from memoryd.evaluation.abstention import KEPT
from memoryd.evaluation.comparison import POOLED, Comparison, Run, load, of_modes, save, values_of, with_saved
from memoryd.evaluation.evaluate import Reports
from memoryd.evaluation.report import NDCG, Mean, ModeReport


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with the figures.

    Attributes:
        save: where to write the run.
        saved: earlier runs to compare with, by their files.
        gate: the file of the run that must not be lost against.
        as_json: print JSON.
    """

    save: Path | None
    saved: Mapping[Path, Run]
    gate: Path | None
    as_json: bool

    @classmethod
    def of(cls, *, save: Path | None, compare: Path | None, gate: Path | None, as_json: bool) -> Plan:
        """Read the earlier runs, before the long work. Raises InvalidInputError where a file is of no use."""
        if save and not save.resolve().parent.is_dir():
            raise InvalidInputError(f"{save} can't be written: its folder does not exist", path=str(save))
        return cls(save, {path: load(path) for path in (compare, gate) if path}, gate, as_json)


def finish(reports: Reports, plan: Plan) -> int:
    """Print the figures, save them, compare them; the exit code."""
    run = values_of(reports)
    if plan.save:
        save(run, plan.save)
    compared = {path: with_saved(before, run) for path, before in plan.saved.items()}
    modes = of_modes(run)
    pooled = _pooled(reports) if len(reports) > 1 else {}
    if plan.as_json:
        print_json(
            {
                "sets": {
                    name: {mode.value: report.as_json() for mode, report in of_set.items()}
                    for name, of_set in reports.items()
                },
                "pooled": pooled,
                "modes": [item.as_json() for item in modes],
                "comparisons": {str(path): [item.as_json() for item in items] for path, items in compared.items()},
            }
        )
    else:
        _print(reports, pooled, modes, compared)
    lost = [item for item in compared[plan.gate] if item.what == POOLED and item.verdict == "loss"] if plan.gate else []
    for item in lost:
        line = f"{item.after}: nDCG@10 fell from {item.mean_before:.3f} to {item.mean_after:.3f} over {item.n} queries"
        err.print(f"memoryd: {line}", style="red")
    return 1 if lost else 0


def _pooled(reports: Reports) -> dict[str, Any]:
    """Average over all queries, and over the sets, however many queries they have."""
    pooled = {}
    for mode in Mode:
        of_mode = [report for of_set in reports.values() for name, report in of_set.items() if name is mode]
        if of_mode:
            mean = Mean.of([value for report in of_mode for value in report.values[NDCG].values()])
            pooled[mode.value] = {
                NDCG: mean.value,
                "interval": [mean.low, mean.high],
                "mean_of_sets": {
                    NDCG: fmean(report.means[NDCG].value for report in of_mode),
                    "auroc": _means(report.abstention.auroc for report in of_mode),
                    "answered_at_default_min_score": _means(report.abstention.answered for report in of_mode),
                },
            }
    return pooled


def _means(of_sets: Iterable[Any]) -> dict[str, float]:
    found = list(of_sets)
    return {
        kind: fmean(of_set[kind] for of_set in found if kind in of_set)
        for kind in dict.fromkeys(kind for of_set in found for kind in of_set)
    }


def _print(
    reports: Reports, pooled: dict[str, Any], modes: Sequence[Comparison], compared: dict[Path, list[Comparison]]
) -> None:
    for name, of_set in reports.items():
        out.print(_ranking(name, of_set))
        out.print(_abstention(of_set), _latency(of_set), sep="\n")
    if pooled:
        table = _table("all sets", "mode", "ndcg@10 of all queries", "95 %", "mean of sets")
        for mode, figures in pooled.items():
            low, high = figures["interval"]
            table.add_row(mode, _f(figures[NDCG]), f"{low:.3f}–{high:.3f}", _f(figures["mean_of_sets"][NDCG]))
        out.print(table)
    if modes:
        out.print(_comparisons("hybrid and its legs", modes))
    for path, items in compared.items():
        out.print(_comparisons(f"compared with {path}", items))


def _ranking(name: str, reports: Mapping[Mode, ModeReport]) -> Table:
    table = _table(
        name, "mode", "recall@5", "ndcg@10", "95 %", "mrr@10", "n", "lines", "of found", "shown", "kept", "degraded"
    )
    for mode, report in reports.items():
        recall, ndcg, mrr = report.means.values()
        table.add_row(
            mode.value,
            _f(recall.value),
            _f(ndcg.value),
            f"{ndcg.low:.3f}–{ndcg.high:.3f}",
            _f(mrr.value),
            str(len(report.values[NDCG])),
            _f(report.line_hits),
            _f(report.found_lines),
            _f(report.shown_lines),
            _f(report.kept),
            str(report.degraded),
        )
    return table


def _abstention(reports: Mapping[Mode, ModeReport]) -> Table:
    kept = [f"{share:.0%} kept" for share in KEPT]
    table = _table("queries without an answer", "mode", "kind", "AUROC", "answered", *kept)
    for mode, report in reports.items():
        abstention = report.abstention
        for kind, auroc in abstention.auroc.items():
            curve = [_f(answered[kind]) for _, answered in abstention.curve.values()]
            table.add_row(mode.value, kind, _f(auroc), _f(abstention.answered[kind]), *curve)
    return table


def _latency(reports: Mapping[Mode, ModeReport]) -> Table:
    stages = list(dict.fromkeys(stage for report in reports.values() for stage in report.latency.stages))
    table = _table("milliseconds; of stages the median", "mode", "p50", "p95", *stages)
    for mode, report in reports.items():
        latency = report.latency
        cells = [latency.p50, latency.p95, *(latency.stages.get(stage) for stage in stages)]
        table.add_row(mode.value, *("–" if cell is None else f"{cell:.1f}" for cell in cells))
    return table


def _comparisons(title: str, items: Sequence[Comparison]) -> Table:
    table = _table(title, "set", "mode", "before", "after", "change", "95 %", "n", "verdict")
    for item in items:
        change = f"{item.mean_after - item.mean_before:+.3f}"
        table.add_row(
            item.what,
            f"{item.after} / {item.before}",
            _f(item.mean_before),
            _f(item.mean_after),
            change,
            f"{item.low:+.3f} {item.high:+.3f}",
            str(item.n),
            item.verdict,
        )
    missing = {item.what: item.missing for item in items if item.missing}
    if missing:
        table.caption = f"saved, but not in this run: {', '.join(f'{n} of {what}' for what, n in missing.items())}"
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        left = column in {"mode", "kind", "set", "verdict"}
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    return table


def _f(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
