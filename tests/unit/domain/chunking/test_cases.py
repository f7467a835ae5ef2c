"""Field cases, by id."""

from __future__ import annotations

from memoryd.domain.chunking import Limits
from tests.unit.domain.chunking.helpers import chunk, count, filler, texts


def test_chunk_cap() -> None:
    line = "word " * 600
    limits = Limits(max_tokens=4000, target_tokens=4000, max_chars=1600)

    pieces = chunk(f"before\n\n{line}\n\nafter\n", limits).pieces

    assert all(len(piece.text) <= 1600 for piece in pieces)
    assert "".join(piece.text for piece in pieces if piece.start_line == 3) == line
    assert [piece.text for piece in pieces if piece.start_line != 3] == ["before", "after"]


def test_fence_heading() -> None:
    fence = "```bash\n# install deps\npip install x\n```"

    (piece,) = chunk(f"# A\n{fence}\n").pieces

    assert piece.breadcrumb == "A"
    assert piece.text == f"# A\n{fence}"

    crowded = texts(f"# A\n{filler('a', 18)}\n{fence}\n\n{filler('b', 18)}")
    assert any(fence in text for text in crowded)


def test_fence_nested() -> None:
    outer = "````md\n```\n# not a heading\n```\n````"

    (piece,) = chunk(f"# A\n{outer}\nafter\n\n## B\nb\n").pieces

    assert piece.breadcrumb == "A"
    assert piece.text.splitlines()[1:7] == [*outer.splitlines(), "after"]


def test_setext() -> None:
    (piece,) = chunk("Title\n=====\nbody\n").pieces

    assert piece.breadcrumb == "Title"
    assert piece.text == "Title\n=====\nbody"


def test_fullwidth() -> None:
    line = "：" * 4000

    pieces = chunk(line).pieces

    assert max(count([piece.embedding_input for piece in pieces])) <= Limits().max_tokens
    assert "".join(piece.text for piece in pieces) == line


def test_emoji_edge() -> None:
    family = "👩🏽‍👩🏽‍👧🏽‍👦🏽"
    limits = Limits(max_chars=64)

    for shift in range(len(family)):
        line = "x" * (64 - shift) + family + "y" * 64
        parts = texts(line, limits)

        assert "".join(parts) == line
        assert [part for part in parts if family in part], "a cluster is cut"
        assert all(part.encode() for part in parts)


def test_blank_line() -> None:
    text = "\n".join(f"## Section {n}\n\n{filler(str(n), 14)}" for n in range(200))

    before, after = chunk(text).pieces, chunk("\n" + text).pieces

    assert len(before) >= 200
    assert [piece.embedding_input for piece in after] == [piece.embedding_input for piece in before]
    assert [piece.start_line for piece in after] == [piece.start_line + 1 for piece in before]
    assert [piece.end_line for piece in after] == [piece.end_line + 1 for piece in before]
