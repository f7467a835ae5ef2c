"""Transcripts: JSON lines of a runtime become lines of plain text, one for one, so that line numbers stay right.

A line is `2026-03-05 10:22 User: what was said`, or blank where the file's line is no message of a person or an
assistant: calls of tools and their results, thoughts, metadata, half a line that is still being written.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memoryd.domain.sessions.envelopes import strip_envelope
from memoryd.domain.sessions.redaction import redact

_LABELS = {"user": "User", "human": "User", "assistant": "Assistant"}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_LINE = re.compile(r"(?:(\d{4}-\d{2}-\d{2}) \d{2}:\d{2} )?((?:User|Assistant): .*)", re.DOTALL)
_MILLISECONDS = 1e11  # seconds since 1970 have fewer digits until the year 5138


@dataclass(frozen=True, slots=True)
class Rendered:
    """A transcript as text.

    Attributes:
        text: a line for each line of the file up to the last message.
        messages: how many messages it has.
    """

    text: str
    messages: int


def render(lines: Iterable[bytes]) -> Rendered:
    """Render a transcript's lines, secrets redacted. Nothing in them makes this fail."""
    rendered = [_render(line) for line in lines]
    while rendered and not rendered[-1]:
        rendered.pop()
    text = "".join(f"{line}\n" for line in rendered)
    return Rendered(text, sum(map(bool, rendered)))


def read_line(line: str) -> tuple[str, str]:
    """Take a rendered line apart: its date, empty where it has none, and the rest, which is what is indexed."""
    match = _LINE.fullmatch(line)
    return (match[1] or "", match[2]) if match else ("", line)


def _render(line: bytes) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(record, dict) or record.get("isMeta"):
        return ""
    message = record.get("message")
    inner: dict[str, Any] = message if isinstance(message, dict) else record
    label = _LABELS.get(str(inner.get("role", "")))
    if label is None:
        return ""
    text = _text(inner.get("content"))
    if label == "User":
        text = strip_envelope(text)
    # Redacted before lines are joined: a key block spans several. Lone surrogates can't be stored.
    words = " ".join(redact(text).replace("\0", "").encode(errors="replace").decode().split())
    if not words:
        return ""
    stamp = _stamp(record.get("timestamp")) or _stamp(inner.get("timestamp"))
    return f"{stamp} {label}: {words}" if stamp else f"{label}: {words}"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
    return "\n".join(text for part in parts if isinstance(text := part.get("text"), str))


def _stamp(value: object) -> str:
    """Write a time (ISO 8601, or seconds or milliseconds since 1970) as date and minute in UTC; empty for none."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            moment = datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS else value, UTC)
        else:
            return ""
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%d %H:%M}" if moment.year >= 1970 else ""  # noqa: PLR2004  (the first year of such times)
