"""Keyword expansion without a model: words that the best hits use are looked for, too.

Pseudo-relevance feedback (Rocchio, "Relevance feedback in information retrieval", 1971; as in RM3, Lavrenko and Croft,
SIGIR 2001): used where the text leg is all there is. nDCG@10 of that leg on an assistant's notes, six long articles,
an agent's workspace, conversation turns and product documentation, with their mean:

    the query's words alone      .694 .965 .571 .431 .825   .6971
    4 hits, 25 terms at .03      .708 .965 .576 .438 .829   .7032
    4 hits, 25 terms at .05      .714 .965 .579 .437 .824   .7037
    6 hits, 15 terms at .07      .705 .965 .574 .436 .831   .7021
    4 hits, 25 terms at .2       .723 .949 .562 .429 .827   .6980

Through the product the second row gives .712 on the notes (.698 without), .586 on the workspace (.587), .436 on the
conversations (.430); the third and fourth lose .005 on the workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

HITS = 4
TERMS = 25
WEIGHT = 0.03
# Only so many are looked up for their rarity.
_SHORTLIST = 150


def expansion(
    hits: Sequence[tuple[float, Sequence[str]]],
    known: Collection[str],
    rarity: Callable[[Sequence[str]], Sequence[float]],
) -> dict[str, float]:
    """Give terms to look for beside those of the query, and what each weighs, above 0 and at most WEIGHT.

    Args:
        hits: score, above 0, and terms of what the query's own words found, best first.
        known: the query's terms.
        rarity: of terms, at least 0.
    """
    best = hits[0][0] if hits else 0.0
    shares: Counter[str] = Counter()
    for score, terms in hits[:HITS]:
        for term, count in Counter(terms).items():
            if len(term) > 1 and term not in known:
                shares[term] += score / best * count / len(terms)  # type: ignore[assignment]  # a Counter of floats
    listed = [term for term, _ in shares.most_common(_SHORTLIST)]
    worth = {term: shares[term] * rare for term, rare in zip(listed, rarity(listed), strict=True) if rare > 0}
    chosen = sorted(worth, key=lambda term: (-worth[term], term))[:TERMS]
    return {term: WEIGHT * worth[term] / worth[chosen[0]] for term in chosen}
