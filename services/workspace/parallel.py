"""Doing the same with many things, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def total(items: Iterable[T], work: Callable[[T], Awaitable[int]], limit: int) -> int:
    """Run `work` on every item, at most `limit` at a time, and add up what it returns.

    The first error cancels the rest and is raised as it is.
    """
    left = iter(items)
    done = 0

    async def take() -> None:
        nonlocal done
        for item in left:
            result = await work(item)  # `done += await …` would read `done` before it waits
            done += result

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(limit):
                group.create_task(take())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return done
