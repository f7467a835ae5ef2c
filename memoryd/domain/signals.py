"""Soft signals of a query: what fits them is raised, and nothing is lowered or left out.

None of the evaluation's sets has quoted phrases, and few name days, so the shares are set by hand: a phrase that is
held word for word nearly decides, a day only tells notes apart that say as much of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from memoryd.domain.scores import Change, Scored, by_score
from memoryd.domain.text import folded, holds

PHRASE_SHARE = 0.5
DAY_SHARE = 0.25


def raise_phrases(scored: Sequence[Scored], phrases: Sequence[str]) -> list[Scored]:
    """Raise the chunks that hold quoted phrases word for word, by the share of the phrases that they hold."""

    def share(item: Scored) -> float:
        chunk = item.candidate.chunk
        text = folded(f"{chunk.breadcrumb}\n{chunk.text}")
        return PHRASE_SHARE * sum(holds(text, phrase) for phrase in phrases) / len(phrases)

    return _raised(scored, "quoted words", share) if phrases else list(scored)


def raise_days(scored: Sequence[Scored], days: AbstractSet[str]) -> list[Scored]:
    """Raise the notes of certain days (YYYY-MM-DD)."""

    def share(item: Scored) -> float:
        outline = item.candidate.outline
        day = item.candidate.chunk.date or outline.date
        return DAY_SHARE if not outline.evergreen and day in days else 0.0

    return _raised(scored, "day named", share) if days else list(scored)


def _raised(scored: Sequence[Scored], signal: str, share: Callable[[Scored], float]) -> list[Scored]:
    raised = []
    for item in scored:
        part = share(item)
        if part <= 0:
            raised.append(item)
            continue
        score = item.score + part * (1.0 - item.score)
        raised.append(item.with_score(score, Change("{}: → {:.3f}", (signal, score))))
    return by_score(raised)
