"""Citations of lines."""

from __future__ import annotations


def citation(path: str, start: int, end: int) -> str:
    """Cite lines of a file, 1-based and inclusive: `path#L5`, or `path#L5-L9`."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"
