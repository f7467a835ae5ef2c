"""Waiting that ends early."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Do some work until it is done, or until the event is set: then it is cancelled, and None unless it had ended."""
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})
    return None if doing.cancelled() else doing.result()
