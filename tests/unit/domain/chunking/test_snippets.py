"""Snippets and citations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.citations import citation
from memoryd.domain.snippets import snippet


def words(line: str) -> set[str]:
    return {word.strip(".,") for word in line.lower().split()}


def test_a_short_chunk_is_its_own_snippet() -> None:
    assert snippet("# A\n\ntext", words, {"text"}) == "# A\n\ntext"


def test_whole_lines_around_the_line_with_the_most_terms() -> None:
    lines = [f"line {n} says something that nobody asked for" for n in range(60)]
    lines[10] = "the lease was mentioned here"
    lines[40] = "the lease is renewed every 30 seconds"

    shown = snippet("\n".join(lines), words, {"lease", "renewed"}).split("\n")

    assert lines[40] in shown[2:-2]
    assert set(shown) <= set(lines)
    assert 600 < len("\n".join(shown)) <= 700


def test_different_terms_count_more_than_one_term_often() -> None:
    lines = [
        "lease lease lease",
        *["lease again and again"] * 20,
        *["x" * 60] * 20,
        "lease and fence",
        *["y" * 60] * 20,
    ]

    assert "lease and fence" in snippet("\n".join(lines), words, {"lease", "fence"})


def test_without_a_hit_it_is_the_beginning() -> None:
    text = "\n".join(f"line {n} of many" for n in range(100))

    for shown in (snippet(text, words, {"absent"}), snippet(text, None, {"line"}), snippet(text, words, set())):
        assert text.startswith(shown + "\n")
        assert len(shown) > 680


def test_a_hit_in_the_first_lines_shows_the_beginning() -> None:
    text = "# Leases\n\nabout the lease\n" + "\n".join(f"line {n} of many" for n in range(100))

    assert snippet(text, words, {"lease"}).startswith("# Leases\n")


def test_a_line_that_is_too_long_is_cut_around_the_hit() -> None:
    line = "Some words without a hit. " * 60 + "Here is the lease. " + "More words without a hit. " * 60

    shown = snippet(line, words, {"lease"})

    assert "Here is the lease." in shown
    assert len(shown) <= 700
    assert shown in line


@given(st.text(), st.integers(1, 60))
def test_it_is_a_part_of_the_chunk_within_the_limit(text: str, limit: int) -> None:
    shown = snippet(text, words, {"a", "0"}, limit)

    assert len(shown) <= limit
    assert shown in text


def test_citations() -> None:
    assert citation("memory/a.md", 5, 5) == "memory/a.md#L5"
    assert citation("memory/a.md", 5, 9) == "memory/a.md#L5-L9"
