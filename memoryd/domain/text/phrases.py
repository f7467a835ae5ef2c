"""Quoted phrases of a query: a chunk that holds one word for word is more likely what is looked for."""

from __future__ import annotations

import unicodedata

import regex

MAX_PHRASES = 8

_QUOTED = regex.compile(
    r'(?<![\p{L}\p{N}])"([^"\n]+)"(?![\p{L}\p{N}])'  # not the inches of 5" and 3"
    r"|“([^”\n]+)”|«([^»\n]+)»|„([^“”\n]+)[“”]|「([^」\n]+)」|『([^』\n]+)』"
)


def quoted_phrases(query: str) -> tuple[str, ...]:
    """Give what stands in quotation marks, in the form of `holds`, none twice, at most MAX_PHRASES."""
    found = (next(group for group in match.groups() if group) for match in _QUOTED.finditer(query))
    phrases = dict.fromkeys(phrase for each in found if (phrase := folded(each)))
    return tuple(phrases)[:MAX_PHRASES]


def folded(text: str) -> str:
    """Bring a text into the form in which phrases are compared: NFKC, without case, white space evened out."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def holds(text: str, phrase: str) -> bool:
    """Whether a folded text holds a folded phrase, from word to word."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not (_inside(text, start) or _inside(text, end)):
            return True
        start = text.find(phrase, start + 1)
    return False


def _inside(text: str, place: int) -> bool:
    """Whether a place is within a word of a script that puts spaces between words."""
    return 0 < place < len(text) and all(_SPACED.match(text[at]) for at in (place - 1, place))


_SPACED = regex.compile(
    r"(?V1)[[\p{L}\p{N}_]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
)
