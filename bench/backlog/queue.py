"""A queue of small file states, put into a file log before anybody takes them."""

from __future__ import annotations

import asyncio
import hashlib
import time

from memoryd.domain.files import FileKey, FileState
from memoryd.domain.names import Scope
from memoryd.ports import FileLog

SCOPE = Scope("bench", "notes")
_AT_ONCE = 64


async def fill(log: FileLog, events: int) -> None:
    """Put so many states of different files, each of one chunk."""
    numbers = iter(range(events))

    async def put() -> None:
        for number in numbers:
            await log.put(_state(number), expected=None, live=False)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(put())


def _state(number: int) -> FileState:
    text = (
        f"# Note {number}\n\nThe ferry {number} leaves the northern pier at noon, and nobody has asked why.\n".encode()
    )
    key = FileKey(SCOPE, f"notes/{number // 1000:03}/note-{number:06}.md")
    return FileState(key, hashlib.sha256(text).hexdigest(), text, time.time())
