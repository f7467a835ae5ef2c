"""Whether nothing is returned where there is nothing: the scores of answerable queries against those of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from memoryd.evaluation.metrics import auroc
from memoryd.evaluation.run import Outcome

# Shares of the answerable queries that a score limit keeps, for the curve of false answers over kept answers.
KEPT = (0.99, 0.97, 0.95, 0.9)


@dataclass(frozen=True, slots=True)
class Abstention:
    """The figures, each by kind of query without an answer; kinds of which there is no query are left out.

    Attributes:
        auroc: chance that an answerable query's top score is above such a query's.
        answered: share of them for which something is returned at the server's default score limit.
        curve: by share kept: the limit that keeps so many of the answerable queries whose right document is among the
            first 6, and the share of each kind whose top score reaches it.
    """

    auroc: Mapping[str, float]
    answered: Mapping[str, float]
    curve: Mapping[float, tuple[float, Mapping[str, float]]]

    @classmethod
    def of(cls, answerable: Sequence[Outcome], others: Mapping[str, Sequence[Outcome]]) -> Abstention:
        """Compare."""
        others = {kind: outcomes for kind, outcomes in others.items() if outcomes}
        found = sorted((outcome.found for outcome in answerable if outcome.found is not None), reverse=True)
        return cls(
            auroc={
                kind: auroc([outcome.top for outcome in answerable], [outcome.top for outcome in outcomes])
                for kind, outcomes in others.items()
            },
            answered={kind: fmean(outcome.answered for outcome in outcomes) for kind, outcomes in others.items()},
            curve={share: _at(found[_last(share, len(found))], others) for share in KEPT} if found else {},
        )

    def as_json(self) -> dict[str, Any]:
        """Name the figures as they are published."""
        return {
            "auroc": dict(self.auroc),
            "answered_at_default_min_score": dict(self.answered),
            "answered_at_kept": {
                f"{share:g}": {"min_score": limit, **answered} for share, (limit, answered) in self.curve.items()
            },
        }


def _last(share: float, count: int) -> int:
    """Index of the last score that must be kept, of `count` falling ones, for at least `share` of them."""
    return min(int(share * count + 1 - 1e-9), count) - 1


def _at(limit: float, others: Mapping[str, Sequence[Outcome]]) -> tuple[float, Mapping[str, float]]:
    return limit, {kind: fmean(outcome.top >= limit for outcome in outcomes) for kind, outcomes in others.items()}
