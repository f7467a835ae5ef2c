"""Waiting for what happens in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], wanted: T, within: float = 30.0) -> None:
    """Look until it is as wanted; fails with the difference after `within` seconds."""
    end = asyncio.get_running_loop().time() + within
    while True:
        seen = await look()
        if seen == wanted or asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(0.02)
    assert seen == wanted
