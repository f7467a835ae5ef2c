"""The figures of a run: one set in one mode, and all sets pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from memoryd.errors import InvalidInputError
from memoryd.evaluation.abstention import Abstention
from memoryd.evaluation.bootstrap import interval
from memoryd.evaluation.latency import Latency
from memoryd.evaluation.metrics import ndcg, recall, reciprocal_rank
from memoryd.evaluation.run import Outcome
from memoryd.evaluation.sets import RetrievalSet

# By metric: its value of each answerable query, by query id.
Values = Mapping[str, Mapping[str, float]]

RECALL, NDCG, MRR = "recall@5", "ndcg@10", "mrr@10"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over queries, and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Average."""
        return cls(fmean(values), *interval(values))


@dataclass(frozen=True, slots=True)
class ModeReport:
    """The figures of one set in one mode.

    Attributes:
        values: of each answerable query, from which the means are.
        means: by metric.
        line_hits: share of the queries with spans for which one of the first 5 results overlaps one; None without.
        found_lines: the same of those for which one of these results is of a span's file; None without.
        shown_lines: share of the latter for which such a result's snippet shows a line of the span; None without.
        kept: share of the queries whose right document is returned at the server's defaults.
        abstention: whether nothing is returned where there is nothing.
        latency: of calls at the server's defaults.
        degraded: answers that were degraded or stale, and so measure something else.
    """

    values: Values
    means: Mapping[str, Mean]
    line_hits: float | None
    found_lines: float | None
    shown_lines: float | None
    kept: float
    abstention: Abstention
    latency: Latency
    degraded: int

    def as_json(self) -> dict[str, Any]:
        """Name the figures as they are published."""
        return {
            **{name: mean.value for name, mean in self.means.items()},
            "n": len(self.values[NDCG]),
            "intervals": {name: [mean.low, mean.high] for name, mean in self.means.items()},
            "line_hits@5": self.line_hits,
            "line_hits_of_found@5": self.found_lines,
            "line_hits_shown_of_found@5": self.shown_lines,
            "kept_at_default_min_score": self.kept,
            "abstention": self.abstention.as_json(),
            "latency_ms": self.latency.as_json(),
            "degraded_answers": self.degraded,
        }


def report(
    data: RetrievalSet, outcomes: Sequence[Outcome], foreign: Sequence[Outcome], gibberish: Sequence[Outcome]
) -> ModeReport:
    """Average over the answerable queries; compare their scores with those of queries that have no answer.

    Args:
        data: the set.
        outcomes: of its own queries.
        foreign: of other sets' queries, asked to this set's documents.
        gibberish: of queries that mean nothing.
    """
    judged = [
        (outcome, data.relevant[outcome.query.id])
        for outcome in outcomes
        if outcome.query.answerable and outcome.query.id in data.relevant
    ]
    if not judged:
        raise InvalidInputError(f"{data.name}: no answerable query has a judgement in qrels.tsv: nothing to measure")
    values = {
        RECALL: {outcome.query.id: recall(outcome.documents, relevant, 5) for outcome, relevant in judged},
        NDCG: {outcome.query.id: ndcg(outcome.documents, relevant, 10) for outcome, relevant in judged},
        MRR: {outcome.query.id: reciprocal_rank(outcome.documents, relevant, 10) for outcome, relevant in judged},
    }
    lines = [outcome.lines for outcome, _ in judged if outcome.lines]
    found = [each for each in lines if each.file]
    unanswerable = [outcome for outcome in outcomes if not outcome.query.answerable]
    return ModeReport(
        values=values,
        means={name: Mean.of(list(of_query.values())) for name, of_query in values.items()},
        line_hits=fmean(each.hit for each in lines) if lines else None,
        found_lines=fmean(each.hit for each in found) if found else None,
        shown_lines=fmean(each.shown for each in found) if found else None,
        kept=fmean(outcome.kept for outcome, _ in judged),
        abstention=Abstention.of(
            [outcome for outcome, _ in judged],
            {"unanswerable": unanswerable, "foreign": foreign, "gibberish": gibberish},
        ),
        latency=Latency.of([outcome.answer for outcome in outcomes]),
        degraded=sum(not outcome.whole for outcome in (*outcomes, *foreign, *gibberish)),
    )
