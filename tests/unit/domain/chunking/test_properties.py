"""What holds for every text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.chunking import Limits, chunk_markdown
from memoryd.domain.chunks import Piece
from memoryd.domain.markdown.lines import is_blank, split_lines
from tests.unit.domain.chunking.helpers import chunk, count

# Small limits, so that small examples are cut in every way.
LIMITS = Limits(target_tokens=30, max_tokens=60, max_chars=100)

_words = st.text(alphabet="ab z.:|*[]`<>-#=中文。：，é\u0301👩\u200d🇩\u3000\t", max_size=60)
_lines = st.one_of(
    _words,
    st.sampled_from(
        ["", "", "---", "```", "````", "# A", "## B *c*", "### C", "Title", "===", "| a | b |", "| - | - |"]
    ),
    st.sampled_from(
        ["- x", "  - y", "1. z", "> q", "> - r", "<div>", "</div>", "    code", "[a]: b", "* * *", "key: v"]
    ),
    st.text(max_size=300),
)
_files = st.builds(
    lambda lines, end: end.join(lines), st.lists(_lines, max_size=40), st.sampled_from(["\n", "\r\n", "\r"])
)
_texts = st.one_of(_files, st.text(max_size=500))


def _restored(pieces: tuple[Piece, ...], lines: list[str]) -> None:
    """Check that each piece is the run of lines that it names, or a part of one line."""
    parts: dict[int, str] = {}
    for piece in pieces:
        run = "\n".join(lines[piece.start_line - 1 : piece.end_line])
        if piece.text != run:
            assert piece.start_line == piece.end_line
            parts[piece.start_line] = parts.get(piece.start_line, "") + piece.text
    for number, text in parts.items():
        assert _visible(text) == _visible(lines[number - 1])


def _visible(text: str) -> str:
    return "".join(text.split())


@given(_texts)
@settings(max_examples=300, deadline=None)
def test_every_line_is_in_exactly_one_piece(text: str) -> None:
    chunked = chunk(text, LIMITS)
    lines = split_lines(text)
    _restored(chunked.pieces, lines)

    held = [n for n, piece in enumerate(chunked.pieces) for _ in range(piece.start_line, piece.end_line + 1)]
    assert held == sorted(held)
    spans = sorted({(piece.start_line, piece.end_line) for piece in chunked.pieces})
    covered = [line for first, last in spans for line in range(first, last + 1)]
    assert len(covered) == len(set(covered))
    wanted = {n for n, line in enumerate(lines, 1) if n > chunked.front_matter.last_line and not is_blank(line)}
    assert wanted <= set(covered)
    assert all(not is_blank(lines[n - 1]) for span in spans for n in span), "pieces begin and end with text"


@given(_texts)
@settings(max_examples=300, deadline=None)
def test_limits_are_never_exceeded(text: str) -> None:
    pieces = chunk(text, LIMITS).pieces

    assert all(tokens <= LIMITS.max_tokens for tokens in count([piece.embedding_input for piece in pieces]))
    assert all(len(piece.text) <= LIMITS.max_chars for piece in pieces)
    assert all(not is_blank(piece.text) for piece in pieces)


@given(_texts)
@settings(max_examples=50, deadline=None)
def test_it_is_deterministic(text: str) -> None:
    assert chunk(text, LIMITS) == chunk(text, LIMITS)


@given(_texts.filter(lambda text: not text.startswith(("-", "\ufeff", "\n", "\r"))))
@settings(max_examples=100, deadline=None)
def test_a_blank_line_at_the_top_changes_no_text(text: str) -> None:
    before, after = chunk(text, LIMITS).pieces, chunk("\n" + text, LIMITS).pieces

    assert [piece.embedding_input for piece in after] == [piece.embedding_input for piece in before]
    assert [piece.start_line for piece in after] == [piece.start_line + 1 for piece in before]


@given(_texts, st.sampled_from(["underestimates", "overestimates"]))
@settings(max_examples=100, deadline=None)
def test_a_tokenizer_whose_counts_do_not_add_up_changes_nothing_of_this(text: str, how: str) -> None:
    def odd(texts: Sequence[str]) -> list[int]:
        factor = 3 if how == "underestimates" else 1
        return [2 + len(text) // 3 + (factor * text.count("\n") * 5) for text in texts]

    pieces = chunk_markdown(text, count=odd, limits=LIMITS).pieces

    _restored(pieces, split_lines(text))
    assert all(tokens <= LIMITS.max_tokens for tokens in odd([piece.embedding_input for piece in pieces]))


_paragraph = st.integers(1, 6).map(lambda n: _lines_of("words", n))
_sections = st.lists(st.lists(_paragraph, max_size=5), min_size=1, max_size=12)


@given(_sections, st.data())
@settings(max_examples=200, deadline=None)
def test_an_edit_changes_pieces_of_its_section_only(sections: list[list[str]], data: st.DataObject) -> None:
    # Every section is larger than what is packed, so it is cut for itself.
    limits = Limits(target_tokens=60, max_tokens=120)
    file = [[_lines_of(f"section {n}", 6), *section] for n, section in enumerate(sections)]
    edited = data.draw(st.integers(0, len(file) - 1))
    place = data.draw(st.integers(0, len(file[edited]) - 1))
    changed = [list(section) for section in file]
    changed[edited][place] += data.draw(st.sampled_from(["\none more line", " and more", "\n\n- item\n- item"]))

    before, after = (list(chunk("\n\n".join(_titled(sections)), limits).pieces) for sections in (file, changed))

    kept = {piece.embedding_input for piece in after}
    assert {piece.breadcrumb for piece in before if piece.embedding_input not in kept} <= {f"Title {edited}"}


def _lines_of(name: str, count: int) -> str:
    return "\n".join(f"line {n} of a paragraph of {name}" for n in range(count))


def _titled(sections: list[list[str]]) -> list[str]:
    return [f"## Title {n}\n\n" + "\n\n".join(section) for n, section in enumerate(sections)]


@pytest.mark.parametrize("opening", ["- ", "\n", "\n## "], ids=["list", "paragraphs", "small sections"])
def test_an_edit_in_a_long_section_changes_a_few_pieces(opening: str) -> None:
    random = Random(7)  # noqa: S311  (the same words in every run)
    lines = [f"{opening}{n} " + " ".join(random.choices("abcdefghij", k=random.randint(3, 40))) for n in range(400)]
    before = Counter(piece.embedding_input for piece in chunk("\n".join(lines)).pieces)
    assert before.total() > 50

    changes = []
    for place in range(0, 400, 8):
        edited = [*lines[:place], lines[place] + " and more", *lines[place + 1 :]]
        after = Counter(piece.embedding_input for piece in chunk("\n".join(edited)).pieces)
        changes.append((after - before).total())

    assert sum(changes) / len(changes) < 2
    assert max(changes) <= 3
