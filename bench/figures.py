"""What every benchmark prints: named figures with their baseline, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `baseline` names what `ratio` compares it with, measured in the same run."""

    name: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def show(figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print figures; the ratios stand in the last column."""
    if as_json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
        return
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        ratio = "" if figure.ratio is None else f"   {figure.ratio:.2f} × {figure.baseline}"
        print(f"{figure.name:<{width}}  {figure.value:>10.2f} {figure.unit:<9}{ratio}")
