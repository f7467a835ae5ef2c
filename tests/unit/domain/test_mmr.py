"""Diversity: what repeats moves down, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.mmr import diversify
from memoryd.domain.text import analyze

CANDIDATES = st.lists(
    st.tuples(st.floats(0, 1.5), st.frozensets(st.sampled_from("abcdefgh"), max_size=5)), max_size=12
).map(lambda pairs: sorted(pairs, key=lambda pair: -pair[0]))


def order(texts: list[str], balance: float = 0.5) -> list[int]:
    relevance = [1 - place / 100 for place in range(len(texts))]
    return diversify(relevance, [set(analyze(text)) for text in texts], balance, len(texts))


def test_a_near_duplicate_comes_after_something_new() -> None:
    texts = [
        "The ferry leaves the harbour at noon on Friday",
        "The ferry leaves the harbour at noon on Fridays",
        "The harbour office opens late",
    ]
    assert order(texts) == [0, 2, 1]
    assert order(texts, balance=1.0) == [0, 1, 2]


def test_mmr_cjk() -> None:
    """Case `mmr-cjk`: two Chinese texts about different things are no near-duplicates."""
    one, two = "今天修复了登录接口的超时问题", "明天和客户讨论报价方案"
    assert order([one, f"{one}。", two]) == [0, 2, 1]
    assert order([one, two, f"{one}。"]) == [0, 1, 2]
    assert order([one, two, "florbnik"], balance=0.8) == [0, 1, 2]  # one shared character does not count as much


def test_words_that_all_candidates_hold_make_none_a_copy() -> None:
    texts = ["invoice of May", "invoice of May, paid", "invoice of June", "invoice of July", "invoice of August"]
    assert order(texts, balance=0.7)[0] == 0
    assert order(texts, balance=0.7)[-1] == 1
    assert sorted(order(texts)) == [0, 1, 2, 3, 4]


@given(CANDIDATES, st.floats(0, 1), st.integers(0, 12))
def test_the_first_k_do_not_depend_on_how_many_are_wanted(
    candidates: list[tuple[float, frozenset[str]]], balance: float, count: int
) -> None:
    relevance, terms = [value for value, _ in candidates], [each for _, each in candidates]
    whole = diversify(relevance, terms, balance, len(candidates))
    assert sorted(whole) == list(range(len(candidates)))
    assert diversify(relevance, terms, balance, count) == whole[:count]
    if candidates:
        assert relevance[whole[0]] == relevance[0]
