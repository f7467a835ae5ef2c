"""Quoted phrases."""

from __future__ import annotations

import pytest

from memoryd.domain.text import folded, holds, quoted_phrases


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('where is "Blue  Harbour" open', ("blue harbour",)),
        ("„zweite Fähre“ und «premier quai»", ("zweite fähre", "premier quai")),
        ("他说“明天开会”吗", ("明天开会",)),
        ("「議事録」はどこ", ("議事録",)),
        ('a 5" pipe and a 3" pipe', ()),
        ('an "open quote', ()),
        ('"" "  "', ()),
        ("it's Rod's and Anna's", ()),
    ],
)
def test_what_is_quoted(query: str, phrases: tuple[str, ...]) -> None:
    assert quoted_phrases(query) == phrases


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("The blue\nharbour is open.", "blue harbour", True),
        ("The blueish harbour", "blue harbour", False),
        ("blue harbours", "blue harbour", False),
        ("PIO-13845 and PIO-1384", "pio-1384", True),
        ("PIO-13845", "pio-1384", False),
        ("我们明天开会讨论", "明天开会", True),
        ("明天不开会", "明天开会", False),
        ("（ｂｌｕｅ　ｈａｒｂｏｕｒ）", "blue harbour", True),
    ],
)
def test_a_phrase_is_held_word_for_word(text: str, phrase: str, held: bool) -> None:
    assert holds(folded(text), folded(phrase)) is held
