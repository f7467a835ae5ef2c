"""Sub-queries that the caller's own model wrote: what they find is blended into what the query itself finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.domain.scores import Scored

# The query counts twice as much as the sub-query that likes a chunk best.
QUERY_SHARE = 2 / 3


def blend(query: Sequence[Scored], subqueries: Sequence[Sequence[Scored]]) -> list[Scored]:
    """Raise the chunks that a sub-query likes better than the query does; none is lowered. Best first.

    Sub-queries are other ways to ask, so the best one counts, not their mean: each finds something else. Whatever the
    query alone would have returned is returned still.

    Args:
        query: every candidate, scored by the query, best first.
        subqueries: of each sub-query its candidates with its own scores.
    """
    best: dict[str, float] = {}
    for scored in subqueries:
        for item in scored:
            name = item.candidate.chunk.id
            best[name] = max(best.get(name, 0.0), item.order)
    blended = []
    for item in query:
        other = best.get(item.candidate.chunk.id, 0.0)
        order = QUERY_SHARE * item.order + (1 - QUERY_SHARE) * other
        if order > item.order:
            step = f"sub-queries: the best gives {min(other, 1.0):.3f} → {min(order, 1.0):.3f}"
            blended.append(replace(item, order=order, changes=(*item.changes, step)))
        else:
            blended.append(item)
    return sorted(blended, key=lambda item: -item.order)
