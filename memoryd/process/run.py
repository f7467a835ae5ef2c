"""From the environment to an exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog

from memoryd.errors import MemorydError
from memoryd.logs import configure
from memoryd.metrics import exposed
from memoryd.process.loop import run_loop
from memoryd.process.settings import ProcessSettings, read, shown
from memoryd.process.variables import warn_of_mistyped
from memoryd.server.lifecycle import until_signal
from memoryd.tracing import exported

S = TypeVar("S", bound=ProcessSettings)

_log = structlog.get_logger(__name__)


def run(name: str, kind: type[S], body: Callable[[S], Coroutine[Any, Any, None]]) -> None:
    """Run a service's process until SIGTERM or SIGINT: exit status 0; an error of ours is one line, and status 1."""
    try:
        settings = read(kind)
        configure(settings.log)
        warn_of_mistyped(kind)
        _log.info("starting", settings=shown(settings))
        with exported(name):
            run_loop(_until_signal(settings, body))
    except MemorydError as error:
        sys.exit(f"memoryd: {error}")


async def _until_signal(settings: S, body: Callable[[S], Coroutine[Any, Any, None]]) -> None:
    async with until_signal(), exposed(settings.metrics):
        await body(settings)
