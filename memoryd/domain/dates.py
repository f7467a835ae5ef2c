"""Days that a query names: 2026-03-05, 5.3.2026, March 5, 5 de marzo, 三月五号, 3월 5일."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

MAX_DAYS = 8

# By number; the beginning is enough where the language shortens its months.
_MONTHS = (
    "january jan janvier januar jänner enero ene janeiro يناير",
    "february feb février fevrier februar febrero fevereiro fev فبراير",
    "march mar mars märz maerz marzo março marco مارس",
    "april apr avril abril abr أبريل ابريل",
    "may mai mayo maio مايو",
    "june jun juin juni junio junho يونيو",
    "july jul juillet juli julio julho يوليو",
    "august aug août aout agosto ago أغسطس اغسطس",
    "september sept sep septembre septiembre setembro set سبتمبر",
    "october oct octobre oktober okt octubre outubro out أكتوبر اكتوبر",
    "november nov novembre noviembre novembro نوفمبر",
    "december dec décembre decembre dezember dez diciembre dic dezembro ديسمبر",
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_NAME = "|".join(sorted(map(re.escape, _MONTH), key=len, reverse=True))
_HAN = "〇一二三四五六七八九"
_NUMBER = r"\d{1,2}|[一二三四五六七八九十廿]{1,3}"
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>\d{1,2})"

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\w.-]){_YEAR}[-/.](?P<month>\d{{1,2}})[-/.]{_DAY}(?![\w-]|\.\d)",
        rf"(?<![\w.]){_DAY}\.\s?(?P<month>\d{{1,2}})\.(?:\s?{_YEAR}(?!\w))?(?!\d)",
        rf"(?<!\w)(?P<name>{_NAME})\.?\s+(?:the\s+)?{_DAY}(?:st|nd|rd|th)?(?:,?\s+{_YEAR})?(?!\w)",
        rf"(?<!\w){_DAY}(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?(?P<name>{_NAME})\.?(?:,?\s+(?:de\s+)?{_YEAR})?(?!\w)",
        rf"(?:(?P<year>\d{{4}}|[{_HAN}]{{4}})\s*[年년]\s*)?(?P<month>{_NUMBER})\s*[月월]\s*(?P<day>{_NUMBER})\s*[日号號일]",
    )
)


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar; `year` is None where the query leaves it out."""

    year: int | None
    month: int
    day: int

    def is_day(self, iso: str) -> bool:
        """Whether it is the one written YYYY-MM-DD."""
        return iso[5:] == f"{self.month:02}-{self.day:02}" and (self.year is None or iso[:4] == f"{self.year:04}")


def days_in(query: str) -> tuple[Day, ...]:
    """Give the days that a query names, none twice, at most MAX_DAYS. What is no day of any year is none."""
    text = unicodedata.normalize("NFKC", query).casefold()
    found = (day for pattern in _PATTERNS for match in pattern.finditer(text) if (day := _day(match.groupdict())))
    return tuple(dict.fromkeys(found))[:MAX_DAYS]


def named_days(days: Iterable[Day], dates: Iterable[str]) -> frozenset[str]:
    """Give those of the dates (YYYY-MM-DD) that are meant: without a year, the latest of them, at most MAX_DAYS."""
    wanted = tuple(days)
    if not wanted:
        return frozenset()
    meant = {iso for iso in dates if any(day.is_day(iso) for day in wanted)}
    return frozenset(sorted(meant, reverse=True)[:MAX_DAYS])


def _day(groups: dict[str, str | None]) -> Day | None:
    name, year = groups.get("name"), groups.get("year")
    day = Day(
        year=_number(year) if year else None,
        month=_MONTH[name] if name else _number(groups["month"] or ""),
        day=_number(groups["day"] or ""),
    )
    try:
        date(day.year if day.year is not None else 2024, day.month, day.day)  # a leap year
    except ValueError:
        return None
    return day


def _number(text: str) -> int:
    """Read Arabic digits, or Chinese numerals: of a year digit by digit, else up to 39."""
    if text.isascii():
        return int(text)
    digits = list(_digits(text))
    if "十" not in text and "廿" not in text:
        return int("".join(map(str, digits)))
    tens, _, ones = text.replace("廿", "二十").partition("十")
    return (_HAN.index(tens) if tens else 1) * 10 + (_HAN.index(ones) if ones else 0) if _simple(tens, ones) else 0


def _simple(*parts: str) -> bool:
    return all(len(part) <= 1 and part in _HAN for part in parts)


def _digits(text: str) -> Iterator[int]:
    return (_HAN.index(character) for character in text if character in _HAN)
