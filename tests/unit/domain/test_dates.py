"""Days that a query names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.dates import Day, days_in, named_days


@pytest.mark.parametrize(
    "query",
    [
        "what happened on 2026-03-05?",
        "notes of 2026/3/5",
        "2026.03.05",
        "am 5.3.2026 in Berlin",
        "on 05. 03. 2026",
        "March 5, 2026",
        "on MARCH 5th 2026 at noon",
        "5 March 2026",
        "the 5th of March, 2026",
        "Mar. 5, 2026",
        "el 5 de marzo de 2026",
        "5 de março de 2026",
        "le 5 mars 2026",
        "am 5. März 2026",
        "2026年3月5日开会",
        "二〇二六年三月五号",
        "2026년 3월 5일",
        "２０２６-０３-０５",
        "5 مارس 2026",
    ],
)
def test_a_day_with_its_year(query: str) -> None:
    assert days_in(query) == (Day(2026, 3, 5),)


@pytest.mark.parametrize(
    "query",
    ["March 5", "on the 5th of March?", "三月五号做了什么", "3月5日", "5. März", "5 de marzo", "3월 5일", "5.3."],
)
def test_a_day_without_a_year(query: str) -> None:
    assert days_in(query) == (Day(None, 3, 5),)


@pytest.mark.parametrize(
    ("query", "day"),
    [("十二月三十一日", (12, 31)), ("十月十日", (10, 10)), ("二月廿九号", (2, 29)), ("十一月二十号", (11, 20))],
)
def test_chinese_numerals(query: str, day: tuple[int, int]) -> None:
    assert days_in(query) == (Day(None, *day),)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "version 2026.4.10.2",
        "1.2.3",
        "10.0.0.1",
        "2026-02-31",
        "February 30",
        "May 2026",
        "it may 5x",
        "march of 40 people",
        "十三月五号",
        "DEC-0054",
        "12026-03-05",
        "2026-03-05-slug",
        "二十二十月五号",
    ],
)
def test_what_is_no_day(query: str) -> None:
    assert days_in(query) == ()


def test_several_days() -> None:
    assert days_in("between March 5 and 2026-03-07, and March 5") == (Day(2026, 3, 7), Day(None, 3, 5))


def test_a_day_without_a_year_means_those_that_there_are() -> None:
    dates = ["2024-03-05", "2025-03-05", "2026-03-05", "2026-03-06"]
    assert named_days([Day(2025, 3, 5)], dates) == {"2025-03-05"}
    assert named_days([Day(None, 3, 5)], dates) == {"2024-03-05", "2025-03-05", "2026-03-05"}
    assert named_days([], dates) == frozenset()


@given(st.text(alphabet="0123456789年月日号.-/ 一二十廿〇abcmarchy", max_size=30))
def test_any_text_is_read(text: str) -> None:
    for day in days_in(text):
        assert 1 <= day.month <= 12
        assert 1 <= day.day <= 31
