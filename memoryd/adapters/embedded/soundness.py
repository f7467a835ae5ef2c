"""Opening engines of which a part may be damaged: what can be built again is set aside, and begun anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from memoryd.errors import DAMAGED, DataError

# What SQLite has beside a file.
_BESIDE = ("-wal", "-shm")

_log = structlog.get_logger(__name__)


class Closable(Protocol):
    """An engine."""

    async def close(self) -> None:
        """Release it."""
        ...


T = TypeVar("T", bound=Closable)


async def open_sound(
    path: Path, opener: Callable[[], Awaitable[T]], check: Callable[[T], Awaitable[None]] | None = None
) -> T:
    """Open an engine; where it is damaged, move what it holds to `PATH.damaged-TIME`, and open it empty.

    Only for what is built again from something else. A file of another format is no damage: its DataError is raised.

    Args:
        path: the engine's file or folder.
        opener: opens it.
        check: looks whether it can be read; raises DataError.
    """
    try:
        return await _checked(opener, check)
    except DataError as error:
        if error.reason != DAMAGED:
            raise
        aside = await asyncio.to_thread(_set_aside, path)
        if aside is None:
            raise
        _log.error("damaged_data_set_aside", path=str(path), aside=str(aside), why=str(error))
    return await _checked(opener, check)


def _set_aside(path: Path) -> Path | None:
    """Move a file or folder away; None where there is none."""
    if not path.exists():
        return None
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
    path.rename(aside)
    for beside in _BESIDE:
        companion = path.with_name(path.name + beside)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + beside))
    return aside


async def _checked(opener: Callable[[], Awaitable[T]], check: Callable[[T], Awaitable[None]] | None) -> T:
    engine = await opener()
    if check is not None:
        try:
            await check(engine)
        except BaseException:
            await engine.close()
            raise
    return engine
