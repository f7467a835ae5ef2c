"""Where files are cut, and the breadcrumbs."""

from __future__ import annotations

import pytest

from memoryd.domain.chunking import Limits
from memoryd.domain.markdown import structure
from tests.unit.domain.chunking.helpers import chunk, count, filler, texts


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\ufeff", "---\ntags: [a]\n---\n"])
def test_a_blank_file_has_no_pieces(text: str) -> None:
    assert chunk(text).pieces == ()


def test_small_sections_are_packed() -> None:
    text = "# Day\n\n" + "\n".join(f"## Topic {n}\n\n- one\n- two\n" for n in range(10))

    pieces = chunk(text).pieces

    assert len(pieces) < 5
    assert {piece.breadcrumb for piece in pieces} == {"Day"}


def test_a_section_with_a_body_of_its_size_is_alone() -> None:
    text = "".join(f"## Topic {n}\n\n{filler(str(n), 14)}\n" for n in range(4))

    assert [piece.breadcrumb for piece in chunk(text).pieces] == [f"Topic {n}" for n in range(4)]


def test_the_breadcrumb_lists_the_headings_outermost_first_without_markup() -> None:
    text = f"# The *big* `tool`\n\n{filler('a', 16)}\n## [Setup](x.md) <b>now</b> ![pic](p.png)\n\n{filler('b', 16)}"

    assert [piece.breadcrumb for piece in chunk(text).pieces] == ["The big tool", "The big tool > Setup now pic"]


def test_a_later_part_of_a_section_has_its_breadcrumb() -> None:
    text = "# A\n\n## B\n\n" + "\n".join(filler(str(n), 8) for n in range(12))

    pieces = chunk(text).pieces

    assert len(pieces) > 3
    assert {piece.breadcrumb for piece in pieces} == {"A > B"}


def test_a_long_breadcrumb_leaves_the_window_to_the_text() -> None:
    titles = [f"{'long words ' * 20}{level}" for level in range(1, 7)]
    text = "".join(f"{'#' * level} {title}\n\n{filler('x', 14)}\n" for level, title in enumerate(titles, 1))

    pieces = chunk(text).pieces

    assert all(len(piece.breadcrumb) <= 200 for piece in pieces)
    assert all(count([piece.breadcrumb])[0] <= 64 + 5 for piece in pieces)
    assert max(count([piece.embedding_input for piece in pieces])) <= 512


def test_a_heading_stays_with_what_follows() -> None:
    text = f"# A\n\n{filler('a', 17)}\n## B\n\n### C\n\n{filler('c', 30)}"

    pieces = chunk(text).pieces

    assert all(piece.text.splitlines()[-1].startswith("Line") for piece in pieces)
    assert any(piece.text.startswith("## B\n\n### C\n\nLine 0 about c") for piece in pieces)


def test_a_heading_without_a_body_is_found() -> None:
    pieces = chunk(f"# A\n\n{filler('a', 16)}\n## Open questions\n").pieces

    assert pieces[-1].text == "## Open questions"
    assert pieces[-1].breadcrumb == "A > Open questions"


@pytest.mark.parametrize(
    "text", ["> # Quoted\n> text\n", "- # Listed\n  text\n", "    # code\n", "<div>\n# html\n</div>\n"]
)
def test_only_headings_of_the_file_open_sections(text: str) -> None:
    (piece,) = chunk(text).pieces

    assert piece.breadcrumb == ""


def test_a_large_list_is_cut_between_its_items() -> None:
    text = "".join(f"- item {n} is here\n  and goes on, with more of it\n  - and a detail\n" for n in range(60))

    cut = texts(text)

    assert len(cut) > 3
    assert all(text.startswith("- item") for text in cut)


def test_a_large_table_is_cut_between_rows_and_keeps_its_head() -> None:
    text = "Limits:\n\n| name | value |\n| --- | --- |\n" + "".join(f"| row {n} | some value |\n" for n in range(100))

    first, *others = texts(text)

    assert first.startswith("Limits:\n\n| name | value |\n| --- | --- |\n| row 0 |")
    assert all(text.startswith("| row") for text in others)


def test_a_fence_over_the_window_is_cut_at_blank_lines() -> None:
    blocks = [filler(f"block {n}", 8) for n in range(8)]

    cut = texts("```text\n" + "\n".join(blocks) + "```\n")

    assert len(cut) > 3
    assert cut[0].startswith("```text\nLine 0")
    assert cut[-1].endswith("\n```")
    assert all(text.startswith("Line 0") for text in cut[1:])


def test_a_block_is_kept_whole_up_to_the_window() -> None:
    fence = "```text\n" + filler("code", 20) + "```"
    assert Limits().target_tokens < count([fence])[0] < Limits().max_tokens - 64

    assert fence in texts(f"# A\n\n{filler('a', 4)}\n{fence}\n\n{filler('b', 4)}")


def test_the_sentence_before_a_large_table_is_no_piece_of_its_own() -> None:
    table = "| a | b |\n| --- | --- |\n" + "".join(f"| row {n} | some value here |\n" for n in range(28))

    assert texts(f"See the table.\n\n{table}")[0].startswith("See the table.\n\n| a | b |")


def test_lines_are_those_of_an_editor() -> None:
    pieces = chunk("\ufeff# A\r\n\r\none\u2028still one\x0cand still\rthree\n").pieces

    assert [(piece.start_line, piece.end_line, piece.breadcrumb) for piece in pieces] == [(1, 4, "A")]
    assert pieces[0].text == "# A\n\none\u2028still one\x0cand still\nthree"


def test_an_unparsable_file_is_cut_at_blank_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "_MAX_LINES", 50)
    text = "\n".join(filler(str(n), 10) for n in range(20))

    chunked = chunk(text)

    assert "more than 50 lines" in chunked.warning
    assert all(piece.text.startswith("Line 0") for piece in chunked.pieces)
    assert sum(piece.text.count("Line") for piece in chunked.pieces) == 200


def test_a_failing_parser_costs_the_structure_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(structure, "parse_blocks", fail)  # no input is known to fail

    chunked = chunk("# A\n\ntext\n")

    assert "parser failed" in chunked.warning
    assert [piece.text for piece in chunked.pieces] == ["# A\n\ntext"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(">" * 100_000 + " x", id="nested quotes in a line"),
        pytest.param("\n".join("> " * (n % 200) + "x" for n in range(2000)), id="nested quotes"),
        pytest.param("\n".join("  " * (n % 300) + "- x" for n in range(2000)), id="nested lists"),
        pytest.param("x" * 2_000_000, id="one line"),
        pytest.param("x" + "\u0301" * 200_000, id="one grapheme cluster"),
        pytest.param("🇩🇪" * 50_000, id="flags"),
        pytest.param("# " + "[" * 50_000 + "\n" + "# " + "*_" * 50_000, id="inline markup"),
        pytest.param("|" * 20_000 + "\n" + "-|" * 20_000 + "\n" + "|" * 20_000, id="wide table"),
        pytest.param("- item\n" * 10_000, id="many items"),
        pytest.param(" " * 1_000_000 + "x", id="white space"),
    ],
)
def test_hostile_files_are_cut(text: str) -> None:
    pieces = chunk(text).pieces

    assert pieces
    assert max(count([piece.embedding_input for piece in pieces])) <= 512
    assert max(len(piece.text) for piece in pieces) <= 4000


def test_limits_that_can_not_be_kept_are_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        Limits(max_tokens=8)
