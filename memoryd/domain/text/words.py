"""Terms of a word: its stem, and for identifiers, paths, addresses, versions and compounds the whole and the parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import Stemmer

# A longer token (a blob, not a word) is known by its beginning, and is not taken apart by letter case.
_MAX_TERM = 128
_MAX_CAMEL = 64

# From the loosest joiner to the tightest: each level's pieces are terms too (`i18n.ts` of `src/lib/i18n.ts`).
_LEVELS = tuple(re.compile(pattern) for pattern in (r"[/:@&=#\\~+]+", r"\.+", r"-+", r"_+", r"'+"))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNIT = re.compile(r"([a-z]{2,})(\d+)|(\d+)([a-z]{2,})")
_CLITIC = re.compile(r"'(?:s|re|ve|ll|d|m)(?!\w)", re.IGNORECASE)
_VERSION = re.compile(r"v\d[\w.+-]*", re.IGNORECASE)
_HYPHENATED = re.compile(r"[a-z]+-[a-z]+", re.IGNORECASE)

# Letters that have no canonical decomposition but an accepted plain spelling.
_PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})
_FIRST_MARK, _LAST_MARK = "\u0300", "\u036f"  # accents; marks of other scripts are letters of their words

# No cache of its own (0): lru_cache stands before it, and the stemmer then has no state that threads could share.
_stem = Stemmer.Stemmer("english", 0).stemWord


def word_terms(surface: str) -> tuple[str, ...]:
    """Give the terms of a surface that is no run of an unspaced script: the whole first, then parts, none twice."""
    return _cached(surface) if len(surface) <= _MAX_CAMEL else _word_terms(surface)


def _word_terms(surface: str) -> tuple[str, ...]:
    word = _CLITIC.sub("", surface).replace(",", "").strip("_")
    terms: list[str] = []
    if word.endswith(("++", "#")):
        base = word.rstrip("+#")
        if word.endswith("++") or len(base) == 1:  # C++, C#; `#` after anything longer is a link's or a heading's
            terms.append(word.casefold()[:_MAX_TERM])
        word = base
    terms += _pieces(word)
    return tuple(term for term in dict.fromkeys(terms) if term)


_cached = lru_cache(maxsize=1 << 15)(_word_terms)


def _pieces(word: str, level: int = 0) -> Iterator[str]:
    while level < len(_LEVELS) and not _LEVELS[level].search(word):
        level += 1
    if level == len(_LEVELS):
        yield from _simple(word)
        return
    if "'" not in word:
        yield word.casefold()[:_MAX_TERM]
    elif level == len(_LEVELS) - 1:
        yield from _forms(word.replace("'", ""))
    if _VERSION.fullmatch(word):
        word = word[1:]
        yield word.casefold()[:_MAX_TERM]
    if _HYPHENATED.fullmatch(word):
        yield from _forms(word.replace("-", ""))  # e-mail, email
    for piece in _LEVELS[level].split(word):
        if piece:
            yield from _pieces(piece, level + 1)


def _simple(word: str) -> Iterator[str]:
    """Terms of a word without joiners: itself, then its parts by letter case (camelCase) or kind (gpt4)."""
    yield from _forms(word)
    if len(word) > _MAX_CAMEL:
        return
    parts = _CAMEL.split(word)
    if len(parts) > 1:
        for part in parts:
            yield from _forms(part)
    elif unit := _UNIT.fullmatch(word.casefold()):
        for part in unit.groups():
            if part:
                yield from _forms(part)


def _forms(word: str) -> Iterator[str]:
    """The stem of a plain word; of an accented one both the accented and the plain."""
    folded = word.casefold()[:_MAX_TERM]
    if folded.isascii():
        yield _stem(folded)
        return
    yield _stem(unicodedata.normalize("NFC", folded))
    bare = "".join(c for c in unicodedata.normalize("NFD", folded) if not _FIRST_MARK <= c <= _LAST_MARK)
    yield _stem(unicodedata.normalize("NFC", bare).translate(_PLAIN))
