"""A query as words: which terms stand for each, what they weigh, and how much of it a chunk holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memoryd.domain.text.stopwords import FUNCTION_CHARACTERS, KOREAN_PARTICLES, STOP_WORDS, foreign_stop_words
from memoryd.domain.text.tokens import is_run, pairs, tokenize
from memoryd.domain.text.weights import CHARACTER_WEIGHT, PART_COVERAGE, PART_WEIGHT, SEAM_WEIGHT, STOP_WEIGHT
from memoryd.domain.text.words import word_terms

# The rest of a longer query is left out: each word costs two to ten posting lists.
MAX_QUERY_WORDS = 64
# As many stop words make no question yet.
_EMPTY_WORDS = 2
_MOST_NATS = 10.0

_STOP_TERMS = frozenset(word if is_run(word) else word_terms(word)[0] for word in STOP_WORDS)


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a query.

    Attributes:
        surface: as it was written, in NFKC. Of a run of an unspaced script each pair of neighbours is a word.
        terms: the index terms that stand for it, the whole first; at least one.
        weight: above 0 and at most 1; less than 1 where the word carries little of the query's subject.
        part_weight: what a part weighs, as a share of the whole.
    """

    surface: str
    terms: tuple[str, ...]
    weight: float = 1.0
    part_weight: float = PART_WEIGHT


def analyze_query(text: str) -> list[QueryWord]:
    """Give the words of a query in order, none twice, at most MAX_QUERY_WORDS. Any text is a query; none is parsed."""
    return _all_words(text)[:MAX_QUERY_WORDS]


def surplus_words(text: str) -> int:
    """Count the words of a query beyond those that `analyze_query` gives."""
    return max(0, len(_all_words(text)) - MAX_QUERY_WORDS)


def has_subject(words: Sequence[QueryWord]) -> bool:
    """Whether a query's words say what it is about: "of" does not, and nor do no words; "who am I" may."""
    return len(words) > _EMPTY_WORDS or any(word.weight > STOP_WEIGHT for word in words)


def nats_per_byte(words: Sequence[QueryWord], weights: Sequence[float]) -> float:
    """Say how improbable words are for their length in UTF-8, at most 10: gibberish is, and so are identifiers.

    `weights` say how rare each word is, in nats. Of no words it is 10.
    """
    size = sum(len(word.surface.encode()) for word in words)
    return min(sum(weights) / size, _MOST_NATS) if size else _MOST_NATS


def term_weights(words: Sequence[QueryWord]) -> dict[str, float]:
    """Give the terms to search for and what each weighs, above 0: the greatest weight among the words it stands for."""
    weights: dict[str, float] = {}
    for word in words:
        for place, term in enumerate(word.terms):
            weight = word.weight * (word.part_weight if place else 1.0)
            weights[term] = max(weights.get(term, 0.0), weight)
    return weights


def coverage(words: Sequence[QueryWord], weights: Sequence[float], terms: AbstractSet[str]) -> float:
    """Give the share, 0 to 1, of a query that a chunk holds.

    A word counts fully when the chunk's `terms` hold its whole, and otherwise by PART_COVERAGE times the share of its
    parts that they hold. `weights` say how rare each of `words` is, at least 0, and are multiplied by the words' own;
    where all are 0 the share is 0.
    """
    weighted = [word.weight * weight for word, weight in zip(words, weights, strict=True)]
    total = sum(weighted)
    if total <= 0:
        return 0.0
    return sum(weight * _held(word, terms) for word, weight in zip(words, weighted, strict=True)) / total


def _held(word: QueryWord, terms: AbstractSet[str]) -> float:
    whole, *parts = word.terms
    if whole in terms:
        return 1.0
    return PART_COVERAGE * sum(part in terms for part in parts) / len(parts) if parts else 0.0


def _all_words(text: str) -> list[QueryWord]:
    words: dict[str, QueryWord] = {}
    for word in _words(text):
        words.setdefault(word.terms[0], word)
    return list(words.values())


def _words(text: str) -> Iterator[QueryWord]:
    surfaces = tokenize(text)
    foreign = foreign_stop_words([surface.casefold() for surface in surfaces])
    for surface in surfaces:
        if not is_run(surface):
            if terms := word_terms(surface):
                stop = terms[0] in _STOP_TERMS or surface.casefold() in foreign
                yield QueryWord(surface, terms, STOP_WEIGHT if stop else 1.0)
        elif len(surface) == 1:
            yield QueryWord(surface, (surface,), _pair_weight(surface))
        else:
            for end, pair in enumerate(pairs(surface), 2):
                weight = _pair_weight(pair)
                if end == len(surface) and pair[1] in KOREAN_PARTICLES:
                    weight = min(weight, SEAM_WEIGHT)
                yield QueryWord(pair, (pair, *dict.fromkeys(pair)), weight, CHARACTER_WEIGHT)


def _pair_weight(pair: str) -> float:
    if pair in STOP_WORDS:
        return STOP_WEIGHT
    return 1.0 if FUNCTION_CHARACTERS.isdisjoint(pair) else SEAM_WEIGHT
