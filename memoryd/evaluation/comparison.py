"""Paired comparisons of nDCG@10 over the same queries: with a saved run, and of modes with each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import orjson

from memoryd.domain.queries import Mode
from memoryd.errors import InvalidInputError
from memoryd.evaluation.bootstrap import interval
from memoryd.evaluation.evaluate import Reports
from memoryd.evaluation.report import NDCG

# nDCG@10 by set, mode and query id: what a run leaves for later ones.
Run: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float]]]

POOLED = "all sets"
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Comparison:
    """How nDCG@10 differs on the same queries.

    Attributes:
        what: the set, or all.
        before: what is compared with, for people.
        after: what is compared.
        mean_before: over the queries that both have.
        mean_after: likewise.
        low: lower end of the 95 % interval of the mean difference.
        high: its upper end.
        n: queries that both have.
        missing: queries that only `before` has.
    """

    what: str
    before: str
    after: str
    mean_before: float
    mean_after: float
    low: float
    high: float
    n: int
    missing: int

    @property
    def verdict(self) -> str:
        """Say `gain` or `loss` where the interval of the difference does not hold 0."""
        return "loss" if self.high < 0 else "gain" if self.low > 0 else "same"

    def as_json(self) -> dict[str, Any]:
        """Name the figures as they are published."""
        return asdict(self) | {"difference": self.mean_after - self.mean_before, "verdict": self.verdict}


def values_of(reports: Reports) -> Run:
    """Take a run's values from its reports."""
    return {
        name: {
            mode.value: {query: round(value, _DIGITS) for query, value in report.values[NDCG].items()}
            for mode, report in modes.items()
        }
        for name, modes in reports.items()
    }


def save(run: Run, path: Path) -> None:
    """Write a run."""
    path.write_bytes(orjson.dumps({NDCG: run}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def load(path: Path) -> Run:
    """Read a run. Raises InvalidInputError where the file holds none."""
    try:
        run = orjson.loads(path.read_bytes())[NDCG]
        return {
            str(name): {
                Mode(mode).value: {str(query): float(value) for query, value in values.items()}
                for mode, values in modes.items()
            }
            for name, modes in run.items()
        }
    except OSError as error:
        raise InvalidInputError(f"{path} can't be read: {error.strerror}", path=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{path} is no run that `memoryd eval --save` wrote", path=str(path)) from error


def with_saved(saved: Run, run: Run) -> list[Comparison]:
    """Compare each set and mode that both have, then all sets pooled.

    Raises InvalidInputError where they share none.
    """
    shared = [name for name in run if name in saved]
    modes = [mode for mode in Mode if any(mode in run[name] and mode in saved[name] for name in shared)]
    found = []
    for mode in modes:
        pairs = {name: (saved[name].get(mode, {}), run[name].get(mode, {})) for name in shared}
        pooled = tuple(_pooled({name: pair[side] for name, pair in pairs.items()}) for side in (0, 1))
        for what, (before, after) in {**pairs, POOLED: pooled}.items():
            if before.keys() & after.keys():
                found.append(_paired(what, ("saved", mode.value), before, after))
    if not found:
        raise InvalidInputError(
            f"the saved run has no query of this one (its sets: {', '.join(saved)}; this one's: {', '.join(run)})"
        )
    return found


def of_modes(run: Run) -> list[Comparison]:
    """Compare hybrid with each leg, over the pooled queries of all sets."""
    pooled = {mode: _pooled({name: modes.get(mode, {}) for name, modes in run.items()}) for mode in Mode}
    hybrid = pooled.pop(Mode.HYBRID)
    return [
        _paired(POOLED, (leg.value, Mode.HYBRID.value), values, hybrid)
        for leg, values in pooled.items()
        if values.keys() & hybrid.keys()
    ]


def _pooled(sets: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {f"{name}\n{query}": value for name, values in sets.items() for query, value in values.items()}


def _paired(what: str, names: tuple[str, str], before: Mapping[str, float], after: Mapping[str, float]) -> Comparison:
    both = [query for query in before if query in after]
    differences = [after[query] - before[query] for query in both]
    low, high = interval(differences)
    means = fmean(before[query] for query in both), fmean(after[query] for query in both)
    return Comparison(what, *names, *means, low, high, len(both), len(before) - len(both))
