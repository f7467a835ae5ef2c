"""Running a retrieval set through the product: every query in every mode, ranked by a document's best chunk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from memoryd.client import SearchResult
from memoryd.domain.queries import DEFAULT_RESULTS, Mode
from memoryd.evaluation.sets import Document, Query, RetrievalSet

# The order in which modes are asked. Hybrid comes first: what it leaves in a cache would make it look fast.
_ORDER = (Mode.HYBRID, Mode.VECTOR, Mode.TEXT)
_LINE_HITS = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What the product answered.

    Attributes:
        results: best first.
        milliseconds: as the caller saw it.
        timings: milliseconds by stage.
        whole: nothing was degraded or stale.
    """

    results: Sequence[SearchResult]
    milliseconds: float
    timings: Mapping[str, float]
    whole: bool


class Product(Protocol):
    """A running memoryd that holds a set's documents, one workspace a group."""

    async def search(self, group: str, text: str, mode: Mode, *, everything: bool) -> Answer:
        """Search one group's workspace, as an agent does, or for 50 results without a score limit (`everything`)."""
        ...


@dataclass(frozen=True, slots=True)
class Lines:
    """Whether one of the first 5 results is of a span's file, overlaps the span, and shows a line of it as snippet."""

    file: bool
    hit: bool
    shown: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one query gave in one mode.

    Attributes:
        query: the query.
        documents: distinct document ids, best first, of 50 results without a score limit.
        lines: of a query with spans, what the first 5 results are of it; None for a query without.
        answered: whether anything was returned at the default score limit.
        kept: whether a relevant document was among these.
        top: score of the best result without a limit; 0 without results.
        found: score of the best relevant result among the first 6 without a limit; None where there is none.
        answer: the product's answer at its defaults.
        whole: nothing was degraded or stale.
    """

    query: Query
    documents: tuple[str, ...]
    lines: Lines | None
    answered: bool
    kept: bool
    top: float
    found: float | None
    answer: Answer
    whole: bool


async def run_set(
    product: Product,
    data: RetrievalSet,
    modes: Collection[Mode],
    progress: Callable[[str, int, int], None],
    *,
    queries: Sequence[Query] | None = None,
    concurrency: int = 1,
    what: str = "search",
) -> dict[Mode, list[Outcome]]:
    """Ask every query in each mode; outcomes in the order of the queries, modes in the order given.

    Args:
        product: the product.
        data: the set.
        modes: which legs.
        progress: called with what is done, how much of it, and of how much.
        queries: what to ask instead of the set's own queries.
        concurrency: queries in flight at once; latencies are those of an idle product with 1 only.
        what: names the work to `progress`.
    """
    asked = data.queries if queries is None else queries
    judge = _Judge(data)
    outcomes = {
        mode: await _run_mode(product, judge, asked, mode, concurrency, partial(progress, f"{mode} {what}"))
        for mode in _ORDER
        if mode in modes
    }
    return {mode: outcomes[mode] for mode in modes}


async def _run_mode(
    product: Product,
    judge: _Judge,
    queries: Sequence[Query],
    mode: Mode,
    concurrency: int,
    progress: Callable[[int, int], None],
) -> list[Outcome]:
    gate = asyncio.Semaphore(concurrency)
    done = 0

    async def ask(query: Query) -> Outcome:
        nonlocal done
        async with gate:
            # The one an agent would send comes first, so its time is not that of a cache.
            shown = await product.search(query.group, query.text, mode, everything=False)
            everything = await product.search(query.group, query.text, mode, everything=True)
        done += 1
        progress(done, len(queries))
        return judge.outcome(query, shown, everything)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(query)) for query in queries]
    return [task.result() for task in tasks]


class _Judge:
    """Compares answers with a set's judgements."""

    def __init__(self, data: RetrievalSet) -> None:
        self._data = data
        self._documents = {(document.group, document.path): document for document in data.documents}

    def outcome(self, query: Query, shown: Answer, everything: Answer) -> Outcome:
        """Judge both answers to a query."""
        relevant = self._data.relevant.get(query.id, frozenset())
        spans = self._data.spans.get(query.id, ())
        results = self._judged(query, everything)
        return Outcome(
            query=query,
            documents=tuple(dict.fromkeys(document.id for document, _ in results)),
            lines=_lines(results[:_LINE_HITS], spans) if spans else None,
            answered=bool(shown.results),
            kept=any(document.id in relevant for document, _ in self._judged(query, shown)),
            top=everything.results[0].score if everything.results else 0.0,
            found=next(
                (result.score for document, result in results[:DEFAULT_RESULTS] if document.id in relevant), None
            ),
            answer=shown,
            whole=shown.whole and everything.whole,
        )

    def _judged(self, query: Query, answer: Answer) -> list[tuple[Document, SearchResult]]:
        """Give results with their documents. A file that the set does not know is a wrong answer of its own."""
        ignored = self._data.ignored.get(query.id, frozenset())
        found = [
            (
                self._documents.get((query.group, result.path))
                or Document(f"?{result.path}", query.group, result.path, "", 0),
                result,
            )
            for result in answer.results
        ]
        return [(document, result) for document, result in found if document.id not in ignored]


def _lines(results: Sequence[tuple[Document, SearchResult]], spans: Sequence[tuple[str, int, int]]) -> Lines:
    files = {document for document, _, _ in spans}
    hits = [
        (result, document.text.split("\n")[max(first + document.shift, result.start_line) - 1 : last + document.shift])
        for document, result in results
        for of, first, last in spans
        if document.id == of
        and result.start_line <= last + document.shift
        and first + document.shift <= result.end_line
    ]
    # A snippet's lines are the file's, or slices of them.
    shown = any(
        (part := shown.strip()) and any(part in line for line in lines)
        for result, lines in hits
        for shown in result.snippet.split("\n")
    )
    return Lines(any(document.id in files for document, _ in results), bool(hits), shown)
