"""Work that goes on in the background of a process until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any


def follow(work: Coroutine[Any, Any, None], stack: AsyncExitStack) -> None:
    """Run something in the background until the stack ends."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        await asyncio.wait({task})

    stack.push_async_callback(end)
