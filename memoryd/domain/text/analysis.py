"""Index terms of bodies and headings."""

from __future__ import annotations

from memoryd.domain.text.tokens import is_run, pairs, tokenize
from memoryd.domain.text.words import word_terms

# Part of a generation's name: raise it with every change that gives any text other terms.
ANALYZER_VERSION = "1"


def analyze(text: str) -> list[str]:
    """Give the index terms of a body, in order, repeats kept; no term is empty or holds whitespace.

    A word gives its stem; an identifier itself and its parts; a run of an unspaced script its characters and the pairs
    of neighbours.
    """
    terms: list[str] = []
    for surface in tokenize(text):
        if is_run(surface):
            terms.extend(surface)
            terms.extend(pairs(surface))
        else:
            terms.extend(word_terms(surface))
    return terms


def heading_terms(breadcrumb: str, path: str) -> list[str]:
    """Give the terms of a chunk's headings and of its file's path and name, a field with its own weight."""
    return analyze(breadcrumb) + analyze(path.removesuffix(".md"))
