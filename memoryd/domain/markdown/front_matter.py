"""Front matter: a YAML mapping between `---` lines at the top of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import yaml

from memoryd.domain.tags import MAX_CHARS, normal_tag

# PyYAML reads some 100,000 characters a second; front matter written by people or tools stays far below this.
_MAX_CHARS = 32_768
_MAX_TAGS = 100
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", "", "null", "~"})
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ].*)?")
_PRIVATE_LINE = re.compile(r"private\s*:\s*[\"']?(?:true|yes|on|1)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a file's front matter says.

    Attributes:
        tags: sorted, each in the form of `normal_tag`.
        date: YYYY-MM-DD, or empty.
        private: None where the file does not say.
        title: used as the outermost heading of a file without a heading of level 1.
        last_line: 1-based; 0 where the file has none. Lines up to it are no chunk's text.
        warning: what could not be used, for a person; empty where all is well.
    """

    tags: tuple[str, ...] = ()
    date: str = ""
    private: bool | None = None
    title: str = ""
    last_line: int = 0
    warning: str = ""


def read_front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """Read the lines of a front matter block, the `---` lines included.

    None where the block is Markdown between two thematic breaks: its text is no YAML mapping. Invalid YAML gives a
    result with a warning and `last_line` 0: it is text. Even then `private: true` counts, so that a typing error
    elsewhere in the block does not show a private file to a group.
    """
    content = "\n".join(lines[1:-1])
    try:
        # BaseLoader makes strings, lists and mappings only: safer than SafeLoader, and a date stays as it is written.
        data = yaml.load(content, Loader=yaml.BaseLoader) if len(content) <= _MAX_CHARS else None  # noqa: S506
    except (yaml.YAMLError, RecursionError) as error:
        return _invalid(lines, f"front matter is not valid YAML and is indexed as text: {_reason(error)}")
    if len(content) > _MAX_CHARS:
        return _invalid(lines, f"front matter is longer than {_MAX_CHARS} characters and is indexed as text")
    if data is None and not content.strip():
        return FrontMatter(last_line=len(lines))
    if not isinstance(data, dict):
        return None
    return _from_mapping({str(key).lower(): value for key, value in data.items()}, len(lines))


def fields(lines: Sequence[str]) -> dict[str, list[str]]:
    """Give the texts of each field of a front matter block, its `---` lines included, by lower-case name."""
    try:
        data = yaml.load("\n".join(lines[1:-1])[:_MAX_CHARS], Loader=yaml.BaseLoader)  # noqa: S506  (strings only)
    except (yaml.YAMLError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        str(name).lower(): [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        for name, value in data.items()
    }


def _invalid(lines: Sequence[str], warning: str) -> FrontMatter:
    private = any(_PRIVATE_LINE.match(line) for line in lines)
    return FrontMatter(private=True if private else None, warning=warning)


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem}, line {error.problem_mark.line + 2}"  # the mark counts from 0, after the first `---`
    return "it can't be read"


def _from_mapping(data: Mapping[str, object], last_line: int) -> FrontMatter:
    warnings = []
    written = _text(data.get("date"))
    day = _date(written)
    if written and not day:
        warnings.append(f"front matter date {written[:40]!r} is not used: write YYYY-MM-DD")
    private = None
    if "private" in data:
        value = _text(data["private"]).lower()
        private = value not in _FALSE
        if private and value not in _TRUE:
            warnings.append(f"front matter private {value[:40]!r} is taken as true: write true or false")
    title = _text(data.get("title"))
    tags, unused = _tags(data.get("tags"))
    if unused:
        warnings.append(
            f"{unused} of the front matter's tags are not used: at most {_MAX_TAGS} of {MAX_CHARS} characters"
        )
    return FrontMatter(tags, day, private, title, last_line, "; ".join(warnings))


def _text(value: object) -> str:
    if isinstance(value, str):
        return "" if value in {"null", "~"} else value.strip()
    return "" if value is None else "(not a single value)"


def _date(written: str) -> str:
    match = _DATE.fullmatch(written)
    if match is None:
        return ""
    try:
        return date.fromisoformat(match[1]).isoformat()
    except ValueError:
        return ""


def _tags(value: object) -> tuple[tuple[str, ...], int]:
    """Read tags, and count those that are beyond a bound: each is a term in both stores' indexes."""
    if isinstance(value, str):
        # `tags: a, b` and `tags: "#a #b"` are both common.
        words: list[object] = list(re.split(r",\s*|\s+(?=#)", value) if "," in value or "#" in value else [value])
    else:
        words = value if isinstance(value, list) else []
    names = {normal_tag(word) for word in words if isinstance(word, str)} - {"", "null", "~"}
    kept = sorted(name for name in names if len(name) <= MAX_CHARS)[:_MAX_TAGS]
    return tuple(kept), len(names) - len(kept)
