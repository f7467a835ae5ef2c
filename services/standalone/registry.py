"""The registry of a data directory for the command line, beside a running server or without one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.generations import SqliteGenerations
from memoryd.errors import ConfigError


@asynccontextmanager
async def open_registry(data_dir: Path) -> AsyncIterator[SqliteGenerations]:
    """Open a data directory's registry. Raises ConfigError, DataError where it is none."""
    try:
        DataDirectory.open(data_dir).close()
    except ConfigError as error:
        if error.reason != "DATA_DIRECTORY_LOCKED":
            raise
    registry = await SqliteGenerations.open(data_dir / "generations.db")
    try:
        yield registry
    finally:
        await registry.close()
