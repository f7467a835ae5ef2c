"""The daily notes of the days that a query names."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.domain.dates import days_in, named_days
from memoryd.domain.outlines import WorkspaceView

_MOST = 64


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes of certain days.

    Attributes:
        days: YYYY-MM-DD; only those that have notes.
        paths: the notes.
    """

    days: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()


NO_NOTES = Notes()


def notes_of_days(text: str, view: WorkspaceView) -> Notes:
    """Find the notes of the days that a query names; nearly always it names none, which costs nothing more."""
    wanted = days_in(text)
    if not wanted:
        return NO_NOTES
    dated = {path: outline.date for path, outline in view.outlines.items() if not outline.evergreen and outline.chunks}
    days = named_days(wanted, set(dated.values()))
    return Notes(days, frozenset(sorted(path for path, day in dated.items() if day in days)[:_MOST]))
