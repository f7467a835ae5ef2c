"""Keyword expansion."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.domain.text.feedback import HITS, TERMS, WEIGHT, expansion

HITS_OF_FERRY = [
    (8.0, ["the", "ferry", "halcyon", "leaves", "the", "quay", "at", "noon", "halcyon"]),
    (4.0, ["the", "ferry", "of", "noon", "and", "the", "halcyon"]),
]


def by_length(terms: Sequence[str]) -> list[float]:
    return [float(len(term)) for term in terms]


def test_frequent_and_rare_words_of_the_best_hits_are_added() -> None:
    terms = expansion(HITS_OF_FERRY, {"ferry"}, by_length)
    assert next(iter(terms)) == "halcyon"
    assert terms["halcyon"] == WEIGHT
    assert all(0 < weight <= WEIGHT for weight in terms.values())
    assert "ferry" not in terms


def test_words_without_rarity_and_single_characters_are_not() -> None:
    assert expansion([(1.0, ["a", "b", "渡", "halcyon"])], set(), lambda terms: [0.0] * len(terms)) == {}
    assert set(expansion([(1.0, ["a", "渡", "渡轮"])], set(), by_length)) == {"渡轮"}


def test_only_the_best_hits_and_terms_count() -> None:
    many = [(1.0, [f"word{n}x{m}" for m in range(19)]) for n in range(HITS + 5)]
    terms = expansion(many, set(), by_length)
    assert len(terms) == TERMS
    assert not any(term.startswith(f"word{HITS}x") for term in terms)


def test_no_hits_no_terms() -> None:
    assert expansion([], {"ferry"}, by_length) == {}
