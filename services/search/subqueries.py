"""Running the sub-queries of a search: each by its own leg, some at once, each able to fail alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.domain.queries import Mode, Rerank, SearchQuery, TypedKind, TypedQuery
from memoryd.domain.text import analyze_query
from memoryd.ports import Filter, Hit, TextKind
from services.search.ask import Ask
from services.search.legs import Found, Legs
from services.search.stages import Stages
from services.search.visibility import Visible

# So that one search with many sub-queries does not fill the embedder's queue.
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class SubQuery:
    """A sub-query and what it found."""

    ask: Ask
    found: Found


async def run_subqueries(
    legs: Legs, query: SearchQuery, where: Filter, visible: Visible, stages: Stages
) -> list[SubQuery]:
    """Run those sub-queries whose leg the query's mode allows."""
    sketches = query.rerank is not Rerank.OFF
    asks = [ask for typed in query.typed if query.mode in {Mode.HYBRID, (ask := _ask(typed, sketches=sketches)).mode}]
    turn = asyncio.Semaphore(_AT_ONCE)

    async def run(ask: Ask) -> SubQuery:
        async with turn:
            return SubQuery(ask, await legs.run(ask, where, visible, stages))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(ask)) for ask in asks]
    return [task.result() for task in tasks]


def found_by(subqueries: Sequence[SubQuery]) -> list[Hit]:
    """List what any of them found."""
    return [hit for each in subqueries for hits in (each.found.vector, each.found.text) for hit in hits or ()]


def _ask(typed: TypedQuery, *, sketches: bool) -> Ask:
    """Say what its leg looks for, a question compared by token sketches, too, where these are wanted.

    By vectors alone the same questions have .07 less nDCG@10, and foreign ones score much higher, see `domain/scoring`.
    A passage is embedded as the chunks are: it has a sketch itself, and no tokens to compare with theirs.
    """
    if typed.kind is TypedKind.LEX:
        return Ask(typed.text, Mode.TEXT, analyze_query(typed.text), main=False)
    if typed.kind is TypedKind.HYDE:
        return Ask(typed.text, Mode.VECTOR, (), TextKind.PASSAGE, main=False)
    return Ask(typed.text, Mode.VECTOR, (), main=False, sketches=sketches)
