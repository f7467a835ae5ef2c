"""Queries as words, weights of their terms, and coverage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.text import MAX_QUERY_WORDS, analyze, analyze_query, coverage, surplus_words, term_weights
from tests.unit.domain.text.test_analysis import TEXTS


def covered(query: str, text: str) -> float:
    words = analyze_query(query)
    return coverage(words, [1.0] * len(words), set(analyze(text)))


class TestWords:
    def test_surfaces_are_as_written_and_terms_whole_first(self) -> None:
        words = analyze_query("Rod's DEC-0054 配置项")
        assert [(word.surface, word.terms) for word in words] == [
            ("Rod's", ("rod",)),
            ("DEC-0054", ("dec-0054", "dec", "0054")),
            ("配置", ("配置", "配", "置")),
            ("置项", ("置项", "置", "项")),
        ]

    def test_a_word_comes_once(self) -> None:
        assert [word.surface for word in analyze_query("work Works 税税税 working")] == ["work", "税税"]

    @pytest.mark.parametrize("query", ["", "   ", "---", "?!。", "\x00", "_", "++"])
    def test_a_query_without_words(self, query: str) -> None:
        assert analyze_query(query) == []
        assert term_weights([]) == {}

    def test_the_surplus_is_counted(self) -> None:
        query = " ".join(f"zz{n}" for n in range(MAX_QUERY_WORDS + 5))
        assert len(analyze_query(query)) == MAX_QUERY_WORDS
        assert surplus_words(query) == 5
        assert surplus_words("a short one") == 0


class TestWeights:
    def test_wholes_count_more_than_parts_and_subjects_more_than_stop_words(self) -> None:
        weights = term_weights(analyze_query("what is the DEC-0054"))
        assert weights["dec-0054"] > weights["dec"] > weights["what"] > 0

    def test_words_count_more_than_seams_and_characters(self) -> None:
        weights = term_weights(analyze_query("服务的配置"))
        assert weights["配置"] > weights["的配"] > weights["的"] > 0

    def test_a_term_has_the_greatest_of_its_weights(self) -> None:
        assert term_weights(analyze_query("DEC-0054 dec"))["dec"] == 1.0

    def test_stop_words_alone_have_weight(self) -> None:
        assert all(weight > 0 for weight in term_weights(analyze_query("to be or not to be")).values())


class TestLanguages:
    @pytest.mark.parametrize(
        ("query", "subject"),
        [
            ("what did we decide about the ferry", {"decide", "ferry"}),
            ("¿cuándo sale el ferry para la isla?", {"sale", "ferry", "isla"}),
            ("quando sai o ferry para a ilha?", {"sai", "ferry", "ilha"}),
            ("quand est-ce que le ferry part pour l'île", {"est-ce", "ferry", "part", "l'île"}),
            ("wann fährt die Fähre zur Insel", {"fährt", "Fähre", "Insel"}),
            ("متى تغادر العبارة إلى الجزيرة", {"تغادر", "العبارة", "الجزيرة"}),
            ("我们什么时候坐渡轮", {"么时", "候坐", "坐渡", "渡轮"}),
            ("フェリーはいつ", {"フェ", "ェリ", "リー"}),
            ("배는 언제", set()),
        ],
    )
    def test_stop_and_question_words_carry_little(self, query: str, subject: set[str]) -> None:
        assert {word.surface for word in analyze_query(query) if word.weight == 1.0} == subject

    @pytest.mark.parametrize(
        "query", ["die casting", "sin city", "my son reads comics", "el niño", "la boheme tickets"]
    )
    def test_a_foreign_stop_word_in_an_english_query_is_a_word(self, query: str) -> None:
        weights = {word.surface: word.weight for word in analyze_query(query)}
        assert all(weight == 1.0 for surface, weight in weights.items() if surface != "my")


class TestCoverage:
    def test_all_and_nothing(self) -> None:
        assert covered("flaky upload", "The upload test is flaky.") == 1.0
        assert covered("flaky upload", "Nothing of it.") == 0.0

    def test_a_missing_word_takes_its_share(self) -> None:
        assert covered("rocky point bagging", "Rocky Point hike") == pytest.approx(2 / 3)

    def test_weights_of_words_count(self) -> None:
        words = analyze_query("rocky bagging")
        assert coverage(words, [1.0, 3.0], {"rocki"}) == pytest.approx(0.25)
        assert coverage(words, [0.0, 0.0], {"rocki"}) == 0.0

    def test_stop_words_hardly_count(self) -> None:
        assert covered("what is the zeppelin", "what is the matter") < 0.2
        assert covered("what is the zeppelin", "A zeppelin.") > 0.8

    def test_parts_count_partly(self) -> None:
        assert 0 < covered("DEC-0054", "DEC-0053") < covered("DEC-0054", "dec 0054") < 1
        assert covered("DEC-0054", "see DEC-0054.") == 1.0

    def test_nothing_asked_is_nothing_found(self) -> None:
        assert coverage([], [], {"a"}) == 0.0


@given(TEXTS)
def test_a_text_holds_its_own_words(text: str) -> None:
    words = analyze_query(text)
    assert coverage(words, [1.0] * len(words), set(analyze(text))) == pytest.approx(1.0 if words else 0.0)


@given(TEXTS, st.sets(st.sampled_from(["a", "zz", "中", "中文", "é", "e", "0"])))
def test_coverage_and_weights_are_within_bounds(text: str, terms: set[str]) -> None:
    words = analyze_query(text)
    assert len(words) <= MAX_QUERY_WORDS
    assert 0 <= coverage(words, [1.0] * len(words), terms) <= 1 + 1e-9
    assert all(0 < weight <= 1 for weight in term_weights(words).values())
