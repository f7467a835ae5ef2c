"""Watching folders: which of them changed, and in which files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time
import unicodedata
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import structlog
from watchfiles import Change
from watchfiles._rust_notify import RustNotify

from memoryd.domain.names import Scope
from memoryd.domain.paths import is_hidden, is_markdown, is_transcript
from memoryd.folder.root import RootMissingError, identify_root
from services.workspace.coverage import unwatched
from services.workspace.metrics import WATCHER_RESTARTS
from services.workspace.settings import WorkspaceServiceSettings

_LOGGER = structlog.get_logger(__name__)
_FIRST_PAUSE = 0.5  # seconds before the first new try; doubled each time
_LONGEST_PAUSE = 60.0
_MANY = 1000  # changes at once after which the queue may have overflowed; Linux keeps 16,384 events by default
_SETTLE = 1.0  # seconds

# Called in the event loop with a workspace and the paths that changed in it; none: anything may have changed.
OnChange = Callable[[Scope, frozenset[str]], None]


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder of a workspace; `prefix` is what the paths of its files begin with."""

    scope: Scope
    root: Path
    prefix: str = ""


class Watcher:
    """Tells which workspaces changed. One system watch and one thread serve all folders.

    It uses the library's inner object rather than `awatch`, because that says neither when the watch is armed (from
    then on no change is missed), nor lets its blocking set-up run in a thread. What the system's queue drops is not
    told by the library, so it is looked for: see `coverage`.
    """

    def __init__(
        self, folders: Sequence[WatchedFolder], settings: WorkspaceServiceSettings, on_change: OnChange
    ) -> None:
        self._folders = folders
        self._settings = settings
        self._on_change = on_change
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="watcher")
        self._stop = threading.Event()
        self._stopped = asyncio.Event()
        self._armed = asyncio.Event()
        self._failures = 0
        self._hopeless: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; returns when the folders are watched, or the first try failed (it goes on trying)."""
        run = self._poll() if self._settings.polling else self._run()
        self._task = asyncio.create_task(run, name="watcher")
        await self._armed.wait()

    async def close(self) -> None:
        """Stop the thread and wait for it."""
        self._stop.set()
        self._stopped.set()
        if self._task is not None:
            await self._task
        self._executor.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            try:
                cause = await loop.run_in_executor(self._executor, self._watch, loop)
                if not self._stop.is_set():
                    WATCHER_RESTARTS.labels(cause).inc()
            except Exception:  # whatever the library raises, watching goes on
                self._failures += 1
                WATCHER_RESTARTS.labels("failure").inc()
                _LOGGER.warning("watcher failed; trying again", failures=self._failures, exc_info=True)
                self._on_armed()
                longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failures - 1, 10))
                await self._pause(longest * random.uniform(0.5, 1))  # noqa: S311  (jitter)

    async def _poll(self) -> None:
        """Have all folders looked through again and again; the library's polling misses what takes under a second."""
        while not self._stop.is_set():
            self._on_armed()
            await self._pause(self._settings.poll_ms / 1000)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> str:
        """Watch the folders that are there until that has to begin anew; tells why. Blocks."""
        settings = self._settings
        present = self._present()
        real = {folder: os.path.realpath(folder.root) for folder in present}
        with RustNotify(list(real.values()), False, False, 0, True, True) as notify:  # noqa: FBT003  (the library takes them by position)
            loop.call_soon_threadsafe(self._on_armed)
            look = time.monotonic() + settings.coverage_seconds
            while self._present() == present:
                changes = notify.watch(
                    max(settings.max_debounce_ms, settings.debounce_ms),
                    settings.debounce_ms,
                    settings.check_ms,
                    self._stop,
                )
                self._failures = 0
                if changes == "stop":
                    break
                if isinstance(changes, set):
                    if any((Change.deleted, root) in changes for root in real.values()):
                        break  # its watch is gone, even where a new folder has come and has got the same inode
                    for folder, root in real.items():
                        paths = _changed_paths(changes, root, folder.prefix)
                        if paths:
                            loop.call_soon_threadsafe(self._on_change, folder.scope, paths)
                many = isinstance(changes, set) and len(changes) >= _MANY
                if many:  # some may have been dropped, whatever those that were told are of
                    loop.call_soon_threadsafe(self._on_armed)
                if many or time.monotonic() >= look:
                    look = time.monotonic() + settings.coverage_seconds
                    if self._is_incomplete(real.values()):
                        return "unwatched"
        return "folders"

    def _is_incomplete(self, roots: Collection[str]) -> bool:
        """Whether folders have no watch, and beginning anew may help: not where it has not helped before. Blocks."""
        missing = unwatched(roots)
        if missing - self._hopeless:
            self._stop.wait(_SETTLE)  # a folder that has just come gets its watch in a moment
            missing &= unwatched(roots)
        fresh = missing - self._hopeless
        self._hopeless = missing
        if fresh:
            _LOGGER.warning("folders were not watched; beginning anew", folders=len(fresh), one=min(fresh))
        return bool(fresh)

    def _present(self) -> dict[WatchedFolder, tuple[int, int]]:
        present = {}
        for folder in self._folders:
            with contextlib.suppress(RootMissingError):
                present[folder] = identify_root(folder.root)
        return present

    def _on_armed(self) -> None:
        """Tell that changes may have been missed, unless this is the start: whoever starts reads everything anyway."""
        if self._armed.is_set():
            for scope in {folder.scope for folder in self._folders}:
                self._on_change(scope, frozenset())
        self._armed.set()


def _changed_paths(changes: set[tuple[int, str]], root: str, label: str) -> frozenset[str]:
    """The changed paths below a folder. Of what is no text of ours only coming and going counts: it may be a folder."""
    paths = set()
    prefix = root.rstrip("/") + "/"
    for change, path in changes:
        below = unicodedata.normalize("NFC", path.removeprefix(prefix))
        counts = change != Change.modified or is_markdown(below) or is_transcript(label + below)
        if counts and path.startswith(prefix) and not is_hidden(below):
            paths.add(label + below)
    return frozenset(paths)
