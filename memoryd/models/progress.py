"""How long work reports where it stands."""

from __future__ import annotations

from collections.abc import Callable

# Called with the stage, what is done, and of how much (0: unknown).
Progress = Callable[[str, int, int], None]


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """Report to nobody."""


def described(stage: str, done: int, total: int) -> str:
    """Put it into words, with its share where that is known."""
    return f"{stage}, {100 * done // total} %" if total else stage
