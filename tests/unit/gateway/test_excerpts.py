import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.markdown.lines import split_lines
from services.gateway.excerpts import MAX_CHARACTERS, Excerpt, excerpt

TEXTS = st.text(st.sampled_from("ab\r\n\x0b\x0c\x85\u2028"), max_size=40)


@pytest.mark.parametrize(
    ("first", "limit", "expected"),
    [
        pytest.param(1, 120, Excerpt("a\nb\r\nc\rd", 4, False, None, 4), id="all"),
        pytest.param(2, 2, Excerpt("b\r\nc\r", 2, True, 4, 4), id="middle"),
        pytest.param(3, 2, Excerpt("c\rd", 2, False, None, 4), id="exactly-to-the-end"),
        pytest.param(5, 1, Excerpt("", 0, False, None, 4), id="past-the-end"),
        pytest.param(4_000_000_000, 4_000_000_000, Excerpt("", 0, False, None, 4), id="far-past-the-end"),
    ],
)
def test_takes_whole_lines(first: int, limit: int, expected: Excerpt) -> None:
    assert excerpt("a\nb\r\nc\rd", first, limit) == expected


def test_drops_whole_trailing_lines_that_do_not_fit() -> None:
    text = "x" * 6999 + "\n" + "y" * 4999 + "\n" + "z\n"
    assert excerpt(text, 1, 120) == Excerpt(text[:12_000], 2, True, 3, 3)


def test_an_overlong_line_further_down_is_left_for_the_next_call() -> None:
    text = "short\n" + "字" * 20_000 + "\nlast\n"
    assert excerpt(text, 1, 120) == Excerpt("short\n", 1, True, 2, 3)
    assert excerpt(text, 2, 120) == Excerpt("字" * 12_000, 1, True, None, 3)
    assert excerpt(text, 3, 120) == Excerpt("last\n", 1, False, None, 3)


@given(TEXTS)
def test_numbers_lines_as_the_chunker_does(text: str) -> None:
    lines = [excerpt(text, number, 1).text for number in range(1, len(split_lines(text)) + 2)]
    assert [line.rstrip("\r\n") for line in lines] == [*split_lines(text), ""]
    assert excerpt(text, 1, 1).of == len(split_lines(text))


@given(TEXTS, st.integers(1, 4))
def test_following_next_from_reads_the_whole_file(text: str, limit: int) -> None:
    read, position = "", 1
    while True:
        part = excerpt(text, position, limit)
        read += part.text
        assert part.truncated is (part.next_from is not None)
        if part.next_from is None:
            break
        position = part.next_from
    assert read == text


def test_budget_is_counted_in_characters() -> None:
    assert MAX_CHARACTERS == 12_000
    assert len(excerpt("界" * 12_000, 1, 1).text) == 12_000
    assert not excerpt("界" * 12_000, 1, 1).truncated
