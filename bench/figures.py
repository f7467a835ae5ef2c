"""What every benchmark prints: named figures with their baseline, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `baseline` names what `ratio` compares it with, measured in the same run.

    `at_least` and `at_most` are what is wanted of the ratio, or of the value where there is no ratio.
    """

    name: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def wanted(self) -> str:
        """What is wanted, and whether it is so; empty where nothing is."""
        found = self.value if self.ratio is None else self.ratio
        if self.at_least is not None:
            return f"{'yes' if found >= self.at_least else 'NO'}, wanted ≥ {self.at_least:g}"
        if self.at_most is not None:
            return f"{'yes' if found <= self.at_most else 'NO'}, wanted ≤ {self.at_most:g}"
        return ""


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def show(figures: Sequence[Figure], *, as_json: bool, file: TextIO | None = None) -> None:
    """Print figures, to standard output if nowhere else; the ratios stand in the last column."""
    if as_json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2), file=file)
        return
    width = max((len(figure.name) for figure in figures), default=0)
    for figure in figures:
        ratio = "" if figure.ratio is None else f"   {figure.ratio:.2f} × {figure.baseline}"
        decimals = 5 if figure.unit == "cosine" else 2
        wanted = f"   {figure.wanted}" if figure.wanted else ""
        print(f"{figure.name:<{width}}  {figure.value:>10.{decimals}f} {figure.unit:<9}{ratio}{wanted}", file=file)
