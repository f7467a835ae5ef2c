"""Front matter: filters instead of text."""

from __future__ import annotations

import pytest

from tests.unit.domain.chunking.helpers import chunk, filler


def test_front_matter_is_no_text() -> None:
    chunked = chunk("---\ntags: [b, '#a', b]\ndate: 2026-05-01\nprivate: true\n---\n\nbody\n")

    front = chunked.front_matter
    assert (front.tags, front.date, front.private) == (("a", "b"), "2026-05-01", True)
    assert (front.last_line, front.warning) == (5, "")
    assert [(piece.text, piece.start_line) for piece in chunked.pieces] == [("body", 7)]


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("a, b", ("a", "b")),
        ("'#b #a'", ("a", "b")),
        ("one tag", ("one tag",)),
        ("[Plan, '#PLAN', Stra\u00dfe, cafe\u0301]", ("caf\u00e9", "plan", "strasse")),
        ("\n  - no\n  - 2026\n  - {x: y}", ("2026", "no")),
        ("", ()),
        ("null", ()),
        ("{a: b}", ()),
    ],
)
def test_tags(written: str, tags: tuple[str, ...]) -> None:
    assert chunk(f"---\ntags: {written}\n---\nx\n").front_matter.tags == tags


def test_tags_beyond_a_bound_are_a_warning() -> None:
    front = chunk(f"---\ntags: [{'x' * 101}, {', '.join(f't{n:03}' for n in range(102))}]\n---\nx\n").front_matter
    assert front.tags == tuple(f"t{n:03}" for n in range(100))
    assert front.warning == "3 of the front matter's tags are not used: at most 100 of 100 characters"


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2026-05-01", "2026-05-01"),
        ("'2026-05-01'", "2026-05-01"),
        ("2026-05-01T10:00:00Z", "2026-05-01"),
        ("2026-05-01 10:00", "2026-05-01"),
        ("", ""),
    ],
)
def test_date(written: str, date: str) -> None:
    front = chunk(f"---\ndate: {written}\n---\nx\n").front_matter

    assert (front.date, front.warning) == (date, "")


@pytest.mark.parametrize("written", ["2026-02-31", "May 2026", "[2026-05-01]", "20260501"])
def test_a_date_that_is_none_is_a_warning(written: str) -> None:
    front = chunk(f"---\ndate: {written}\n---\nx\n").front_matter

    assert front.date == ""
    assert "write YYYY-MM-DD" in front.warning


@pytest.mark.parametrize(
    ("line", "private"),
    [
        ("private: true", True),
        ("Private: YES", True),
        ("private: false", False),
        ("private: no", False),
        ("private:", False),
        ("title: x", None),
    ],
)
def test_private(line: str, private: bool | None) -> None:
    front = chunk(f"---\n{line}\n---\nx\n").front_matter

    assert (front.private, front.warning) == (private, "")


def test_private_with_an_unknown_value_is_withheld() -> None:
    front = chunk("---\nprivate: only me\n---\nx\n").front_matter

    assert front.private is True
    assert "write true or false" in front.warning


@pytest.mark.parametrize(
    "block",
    [
        "title: [unclosed",
        "a: b: c",
        "\tx: y",
        "a: &a [*a]",
        "x: " + "[" * 3000,
        "k: v\n" * 10_000,
        "a: !!python/object/apply:os.system [ls]\nb: [",
    ],
)
def test_invalid_yaml_is_text_and_a_warning(block: str) -> None:
    chunked = chunk(f"---\n{block}\nprivate: true\n---\nbody\n")

    assert chunked.front_matter.last_line == 0
    assert "indexed as text" in chunked.front_matter.warning
    assert chunked.front_matter.private is True, "a typing error must not show a private file"
    assert "\n".join(piece.text for piece in chunked.pieces).startswith(f"---\n{block[:3]}")
    assert all(piece.breadcrumb == "" for piece in chunked.pieces)


def test_tags_of_python_objects_are_strings() -> None:
    assert chunk("---\ntags: !!python/name:os.system x\n---\nx\n").front_matter.tags == ("x",)


@pytest.mark.parametrize(
    "text",
    [
        "---\nJust text.\n---\n\nmore\n",
        "---\n# A\n---\n\nmore\n",
        "---\n- a\n- b\n---\nmore\n",
        "--- mail ---\nfrom: x\n---\nmore\n",
        "\n---\ntags: [a]\n---\nmore\n",
        "---\ntags: [a]\nmore\n",
    ],
)
def test_text_between_thematic_breaks_is_text(text: str) -> None:
    chunked = chunk(text)

    assert (chunked.front_matter.last_line, chunked.front_matter.warning) == (0, "")
    assert "\n".join(piece.text for piece in chunked.pieces) == text.strip("\n")


def test_empty_front_matter_is_front_matter() -> None:
    chunked = chunk("---\n---\nbody\n")

    assert chunked.front_matter.last_line == 2
    assert [piece.text for piece in chunked.pieces] == ["body"]


def test_the_title_stands_in_for_a_missing_top_heading() -> None:
    front = "---\ntitle: Notes on gantry\n---\n"

    assert [p.breadcrumb for p in chunk(f"{front}text\n").pieces] == ["Notes on gantry"]
    assert [p.breadcrumb for p in chunk(f"{front}## B\n\n{filler('b', 16)}").pieces] == ["Notes on gantry > B"]
    assert [p.breadcrumb for p in chunk(f"{front}# Gantry\n\ntext\n").pieces] == ["Gantry"]
