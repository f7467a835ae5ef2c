"""The bounds of a request. Each message names the field, the value and what is allowed."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import replace
from datetime import date

from memoryd.domain.paths import PathError, check_path
from memoryd.domain.queries import MAX_QUERY, MAX_RESULTS, Freshness, SearchQuery
from memoryd.domain.tags import normal_tag
from memoryd.errors import InvalidInputError, refuse

MAX_TYPED = 16
MAX_TYPED_TEXT = 2000  # characters
MAX_TAGS = 16
MAX_GLOB = 1000  # characters
MAX_WAIT = 30.0  # seconds


def checked_query(query: SearchQuery) -> SearchQuery:
    """Bring a query's paths into normal form. Raises InvalidInputError for the first field out of bounds."""
    _text("query", query.text)
    _within("max_results", query.max_results, 1, MAX_RESULTS)
    _within("min_score", query.min_score, 0, 1)
    if query.mmr_lambda is not None:
        _within("mmr_lambda", query.mmr_lambda, 0, 1)
    half_life = query.decay_half_life_days
    if half_life is not None and not (math.isfinite(half_life) and half_life >= 0):
        refuse("decay_half_life_days", half_life, "must be a number of days, such as 30, or 0 for no decay")
    _dates(query.since, query.until)
    if len(query.typed) > MAX_TYPED:
        refuse("typed", len(query.typed), f"sub-queries are too many; at most {MAX_TYPED} are allowed")
    for index, typed in enumerate(query.typed):
        _text(f"typed[{index}].text", typed.text, MAX_TYPED_TEXT)
    return replace(
        query,
        path_prefix=_below("path_prefix", query.path_prefix),
        glob=_glob(query.glob),
        tags=_tags(query.tags),
        freshness=query.freshness and _freshness(query.freshness),
    )


def checked_path(field: str, path: str) -> str:
    """Bring a path into normal form. Raises InvalidInputError that names the rule it breaks."""
    try:
        return check_path(path)
    except PathError as error:
        raise InvalidInputError(f"{field}: {error}", field=field, rule=error.rule) from error


def _text(field: str, text: str, most: int = MAX_QUERY) -> None:
    if not text.strip():
        refuse(field, text, "is blank; say what to look for")
    if len(text) > most:
        refuse(field, len(text), f"characters are too many; at most {most} are allowed")


def _within(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # so that NaN fails
        refuse(field, value, f"is out of range; it must be from {low} to {high}")


def _dates(since: str, until: str) -> None:
    for field, value in (("since", since), ("until", until)):
        if value and not _is_date(value):
            refuse(field, value, "is not a date; write YYYY-MM-DD")
    if since and until and since > until:
        refuse("since", since, f"is after until, {until!r}; nothing can lie between them")


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text  # fromisoformat alone takes 20260305 and 2026-W10-4 too
    except ValueError:
        return False


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    if len(tags) > MAX_TAGS:
        refuse("tags", len(tags), f"are too many; at most {MAX_TAGS} are allowed")
    normal = tuple(sorted({normal_tag(tag) for tag in tags}))
    for tag in tags:
        if not normal_tag(tag):
            refuse("tags", tag, "is blank; write a word of the front matter's tags")
    return normal


def _glob(glob: str) -> str:
    if len(glob) > MAX_GLOB:
        refuse("glob", len(glob), f"characters are too many; at most {MAX_GLOB} are allowed")
    return _below("glob", glob)


def _below(field: str, prefix: str) -> str:
    normal = unicodedata.normalize("NFC", prefix)
    rules = (
        (normal.startswith("/"), "is absolute"),
        ("\\" in normal, "contains a backslash"),
        ("\0" in normal, "contains a NUL character"),
        (".." in normal.split("/"), "contains '..'"),
    )
    for broken, what in rules:
        if broken:
            refuse(field, prefix, f"{what}; give the start of a path in the workspace, such as memory/projects/")
    while normal.startswith("./"):
        normal = normal[2:]
    return normal


def _freshness(freshness: Freshness) -> Freshness:
    if not 0 <= freshness.wait <= MAX_WAIT:
        refuse(
            "freshness.wait_ms",
            round(freshness.wait * 1000),
            f"is out of range; it must be from 0 to {MAX_WAIT * 1000:.0f}",
        )
    return replace(freshness, path=checked_path("freshness.path", freshness.path))
