"""What the parser holds of a file at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from markdown_it.token import Token

from memoryd.domain.markdown import blocks
from memoryd.domain.markdown.blocks import TooManyTokensError, parse_blocks
from tests.unit.domain.chunking.helpers import chunk

_KINDS = {"paragraph_open", "list_item_open", "table_open", "heading_open"}


def _taken(text: str) -> list[list[tuple[str, list[int] | None]]]:
    taken: list[list[tuple[str, list[int] | None]]] = []

    def take(tokens: Sequence[Token]) -> None:
        taken.append([(token.type, token.map) for token in tokens])

    parse_blocks(text, take, kinds=_KINDS, front_matter=False)
    return taken


def test_tokens_are_handed_on_block_by_block() -> None:
    assert _taken("one\n\n# two\n\n- three\n- four\n\nfive\n") == [
        [("paragraph_open", [0, 1])],
        [("heading_open", [2, 3]), ("inline", [2, 3])],
        [
            ("list_item_open", [4, 5]),
            ("paragraph_open", [4, 5]),
            ("list_item_open", [5, 7]),
            ("paragraph_open", [5, 6]),
        ],
        [("paragraph_open", [7, 8])],
    ]


def test_no_more_is_held_of_a_long_file_than_its_largest_block() -> None:
    assert max(map(len, _taken("- a\n- b\n\n# heading\n\ntext\n\n" * 1000))) == 4


def test_the_cells_of_a_table_are_not_held() -> None:
    table = "|a" * 50 + "\n" + "|-" * 50 + "\n" + ("|a" * 50 + "\n") * 200

    assert _taken(table) == [[("table_open", [0, 202])]]


def test_a_block_of_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_MAX_TOKENS", 100)

    with pytest.raises(TooManyTokensError):
        _taken("- - - - - - - - - x\n" * 20)


def test_a_file_with_such_a_block_is_cut_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_MAX_TOKENS", 100)

    chunked = chunk("# A\n\n" + "- - - - - - - - - x\n" * 20)

    assert "the Markdown parser failed" in chunked.warning
    assert sum(piece.text.count("x") for piece in chunked.pieces) == 20
