"""Running a retrieval set through the product: every query in every mode, ranked by a document's best chunk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from memoryd.domain.queries import DEFAULT_RESULTS, MAX_RESULTS, Mode, SearchQuery, SearchResult
from memoryd.errors import InvalidInputError
from memoryd.evaluation.metrics import ndcg, recall, reciprocal_rank
from memoryd.evaluation.sets import Query, RetrievalSet

# Queries in flight at once: enough to keep two cores busy, few enough to leave each its deadline.
_CONCURRENCY = 4


class Product(Protocol):
    """A running memoryd that holds the set's documents, one workspace a group."""

    async def search(self, group: str, query: SearchQuery) -> Sequence[SearchResult]:
        """Search one group's workspace."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one query gave in one mode.

    Attributes:
        query: the query.
        documents: distinct document ids, best first, of 50 results without a score limit.
        line_hit: whether one of the first 5 results overlaps a span; None for a query without spans.
        answered: whether anything was returned at the default score limit.
        kept: whether a relevant document was among these.
    """

    query: Query
    documents: tuple[str, ...]
    line_hit: bool | None
    answered: bool
    kept: bool


@dataclass(frozen=True, slots=True)
class ModeReport:
    """The figures of one mode; a share is None where the set has nothing to measure it on."""

    recall_at_5: float
    ndcg_at_10: float
    mrr_at_10: float
    n: int
    line_hits: float | None
    answered_unanswerable: float | None
    kept: float

    def as_json(self) -> dict[str, float | int | None]:
        """Name the figures as they are published."""
        return {
            "recall@5": self.recall_at_5,
            "ndcg@10": self.ndcg_at_10,
            "mrr@10": self.mrr_at_10,
            "n": self.n,
            "line_hits@5": self.line_hits,
            "unanswerable_answered": self.answered_unanswerable,
            "kept_at_default_min_score": self.kept,
        }


async def run_mode(
    product: Product, data: RetrievalSet, mode: Mode, progress: Callable[[int, int], None]
) -> list[Outcome]:
    """Ask every query in one mode; outcomes in the order of the queries."""
    ids = {(document.group, document.path): document for document in data.documents}
    gate = asyncio.Semaphore(_CONCURRENCY)
    done = 0

    async def ask(query: Query) -> Outcome:
        nonlocal done
        async with gate:
            results = await product.search(
                query.group, SearchQuery(query.text, max_results=MAX_RESULTS, min_score=0.0, mode=mode)
            )
            shown = await product.search(query.group, SearchQuery(query.text, max_results=DEFAULT_RESULTS, mode=mode))
        done += 1
        progress(done, len(data.queries))
        found = [(ids[query.group, result.path], result) for result in results]
        relevant = data.relevant.get(query.id, frozenset())
        spans = data.spans.get(query.id, ())
        line_hit = any(
            document.id == span_document
            and result.start_line <= last + document.shift
            and first + document.shift <= result.end_line
            for document, result in found[:5]
            for span_document, first, last in spans
        )
        return Outcome(
            query=query,
            documents=tuple(dict.fromkeys(document.id for document, _ in found)),
            line_hit=line_hit if spans else None,
            answered=bool(shown),
            kept=any(ids[query.group, result.path].id in relevant for result in shown),
        )

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(query)) for query in data.queries]
    return [task.result() for task in tasks]


def report(data: RetrievalSet, outcomes: Sequence[Outcome]) -> ModeReport:
    """Average the metrics over the answerable queries, and the false answers over the others."""
    judged = [
        (outcome, data.relevant[outcome.query.id])
        for outcome in outcomes
        if outcome.query.answerable and outcome.query.id in data.relevant
    ]
    if not judged:
        raise InvalidInputError(f"{data.name}: no answerable query has a judgement in qrels.tsv: nothing to measure")
    unanswerable = [outcome for outcome in outcomes if not outcome.query.answerable]
    line_hits = [outcome.line_hit for outcome, _ in judged if outcome.line_hit is not None]
    return ModeReport(
        recall_at_5=fmean(recall(outcome.documents, relevant, 5) for outcome, relevant in judged),
        ndcg_at_10=fmean(ndcg(outcome.documents, relevant, 10) for outcome, relevant in judged),
        mrr_at_10=fmean(reciprocal_rank(outcome.documents, relevant, 10) for outcome, relevant in judged),
        n=len(judged),
        line_hits=fmean(line_hits) if line_hits else None,
        answered_unanswerable=fmean(outcome.answered for outcome in unanswerable) if unanswerable else None,
        kept=fmean(outcome.kept for outcome, _ in judged),
    )
