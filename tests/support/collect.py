"""What an asynchronous iterator gives before it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

_T = TypeVar("_T")


async def collect(items: AsyncIterator[_T], into: list[_T]) -> None:
    """Put what comes into a list, which keeps it where an error follows."""
    async for item in items:
        into.append(item)  # noqa: PERF401  (a comprehension would lose what came before an error)
