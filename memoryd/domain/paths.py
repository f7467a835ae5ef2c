"""Paths of workspace files: which a caller may name, and what a path alone says about its file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date

from memoryd.domain.globs import matches_glob

# Read-only for a flush and for appends.
BOOTSTRAP_FILES = frozenset(
    {"AGENTS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md"}
)
SESSIONS = "sessions"
# A transcript holds what was said in a direct conversation word for word.
DEFAULT_PRIVATE = ("MEMORY.md", "USER.md", f"{SESSIONS}/*.jsonl")

_NOT_READ = frozenset({"node_modules", "venv", "__pycache__"})  # names with a dot in front are hidden anyway
_DATED = re.compile(r"memory/(?:[^/]+/)*([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-[^/]+)?\.md")
_TRANSCRIPT = re.compile(rf"{SESSIONS}/[^/]+\.jsonl")
_DRIVE = re.compile(r"[A-Za-z]:/")
_SHOWN = 200  # characters of a refused path that its message repeats


class PathError(ValueError):
    """A path that no workspace file can have.

    Attributes:
        rule: UPPER_SNAKE, for programs: EMPTY, NUL, NOT_UNICODE, BACKSLASH, ABSOLUTE, PARENT, NOT_MARKDOWN.
    """

    def __init__(self, rule: str, message: str) -> None:
        """Keep the broken rule for programs, the message for people."""
        super().__init__(message)
        self.rule = rule


def check_path(path: str) -> str:
    """Bring a caller's path into the form that file keys have: NFC, without `.` and empty segments.

    Decides from the text alone, so an answer tells nothing about the machine. Raises PathError that names the rule and
    the path.
    """
    normal = unicodedata.normalize("NFC", path)
    parts = [part for part in normal.split("/") if part not in {"", "."}]
    checked = "/".join(parts)
    rules = (
        ("EMPTY", not normal.strip(), "is empty"),
        ("NUL", "\0" in normal, "contains a NUL character"),
        ("NOT_UNICODE", not _encodable(normal), "is not valid Unicode"),
        ("BACKSLASH", "\\" in normal, "contains a backslash: separate folders by /"),
        ("ABSOLUTE", normal.startswith("/") or _DRIVE.match(normal) is not None, "is absolute"),
        ("PARENT", ".." in parts, "contains '..'"),
        ("NOT_MARKDOWN", not (is_markdown(normal) or is_transcript(checked)), "does not end in .md"),
    )
    for rule, broken, what in rules:
        if broken:
            message = (
                f"the path {path[:_SHOWN]!r} {what}; give the path of a Markdown file relative to the workspace, "
                "such as memory/2026-05-14.md"
            )
            raise PathError(rule, message)
    return checked


def is_markdown(path: str) -> bool:
    """Whether a file may be Markdown by its name."""
    return path.endswith(".md")


def is_transcript(path: str) -> bool:
    """Whether a file is a session's transcript by its name and place."""
    return _TRANSCRIPT.fullmatch(path) is not None


def is_hidden(path: str) -> bool:
    """Whether a file or folder is never read: it, or a folder above it, is hidden or holds installed packages."""
    return any(part.startswith(".") or part in _NOT_READ for part in path.split("/"))


def path_date(path: str) -> str:
    """Give the date that a path carries, YYYY-MM-DD, or an empty string.

    Only `memory/…/YYYY-MM-DD[-slug].md` carries one, and only if it is a real date.
    """
    match = _DATED.fullmatch(path)
    if match is None:
        return ""
    try:
        return date.fromisoformat(match[1]).isoformat()
    except ValueError:
        return ""


def is_evergreen(path: str) -> bool:
    """Whether a file never decays: everything but dated notes and transcripts."""
    return not path_date(path) and not is_transcript(path)


def is_private(path: str, globs: Sequence[str] = DEFAULT_PRIVATE) -> bool:
    """Whether a file is withheld in chats that are not direct.

    The case of letters does not count: on some file systems `memory.md` opens MEMORY.md.
    """
    folded = path.casefold()
    return any(matches_glob(folded, glob.casefold()) for glob in globs)


def _encodable(text: str) -> bool:
    # A file name that is not UTF-8 reaches Python as lone surrogates.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
