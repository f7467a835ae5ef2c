"""Work that is mostly too short for a thread, and sometimes too long for the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_LARGE = 1 << 17  # bytes that are decoded or compressed in about a millisecond


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do `work` on `size` bytes: in a thread where they are many."""
    if size > _LARGE:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)
