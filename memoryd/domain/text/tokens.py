"""Tokens: a text, normalised and cut into words, identifiers, runs of unspaced script and emoji."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

import regex

# Scripts that write no spaces between words, and Hangul, whose words carry particles: their runs become n-grams.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_WORD = rf"[[\p{{L}}\p{{N}}_]--[{_UNSPACED}]][[\p{{L}}\p{{M}}\p{{N}}_]--[{_UNSPACED}]]*"
# What may stand inside an identifier, a number, a path, an address or a word. A comma only between groups of digits.
_JOINER = r"(?:://|::|:\\|[-./@:'&=+#\\~]|(?<=\p{N}),(?=\p{N}{3}(?!\p{N})))"
_TOKEN = regex.compile(
    rf"(?V1)(?:(?<![\p{{L}}\p{{N}}_.])\.(?=\p{{L}}))?{_WORD}(?:{_JOINER}{_WORD})*(?:\+\+|#)?"
    rf"|[{_UNSPACED}]+|\p{{Extended_Pictographic}}"
)
_RUN = regex.compile(rf"(?V1)[{_UNSPACED}]")
# Below this code point no script is unspaced: spares a match a token in most texts.
_FIRST_UNSPACED = "\u0e00"

_REPLACED = {
    # Invisible inside words: soft hyphen, zero-width (non-)joiners, word joiner, byte order mark.
    "\u00ad": "",
    "\u200c": "",
    "\u200d": "",
    "\u2060": "",
    "\ufeff": "",
    # NFKC would glue the letters to the word before.
    "™": " ",
    "℠": " ",
    # Hyphens, short dashes and minus; apostrophes.
    "\u2010": "-",
    "\u2011": "-",
    "\u2012": "-",
    "\u2013": "-",
    "\u2212": "-",
    "\u2019": "'",
    "\u02bc": "'",
    "\u00b4": "'",
}


def tokenize(text: str) -> Sequence[str]:
    """Cut a text into surfaces, in order, in NFKC. Everything else (punctuation, markup, spaces) separates them."""
    if not text.isascii():
        for found, replacement in _REPLACED.items():
            text = text.replace(found, replacement)
        text = unicodedata.normalize("NFKC", text)
    surfaces: list[str] = _TOKEN.findall(text.replace("\\_", "_"))  # Markdown escapes underscores
    return surfaces


def is_run(surface: str) -> bool:
    """Whether a surface is a run of a script without spaces."""
    return surface[0] >= _FIRST_UNSPACED and _RUN.match(surface) is not None


def pairs(run: str) -> Iterator[str]:
    """Give each two neighbours of a run, in order; none of a single character."""
    return map("".join, pairwise(run))
