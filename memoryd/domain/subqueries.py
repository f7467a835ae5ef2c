"""Sub-queries that the caller's own model wrote: what they find is blended into what the query itself finds."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.domain.scores import Change, Scored, by_score

# The query counts more than the sub-query that likes a chunk best; but what a sub-query alone finds for certain passes
# DEFAULT_MIN_SCORE, which a share of two thirds would not let it.
QUERY_SHARE = 0.6


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
            best[name] = max(best.get(name, 0.0), item.score)
    blended = []
    for item in query:
        other = best.get(item.candidate.chunk.id, 0.0)
        score = QUERY_SHARE * item.score + (1 - QUERY_SHARE) * other
        if score > item.score:
            change = Change("sub-queries: the best gives {:.3f} → {:.3f}", (other, score))
            blended.append(item.with_score(score, change))
        else:
            blended.append(item)
    return by_score(blended)
