"""The use cases of the workspace service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from memoryd.domain.names import Scope
from memoryd.errors import DeadlineExceededError, NotFoundError, UnavailableError
from memoryd.folder.root import ROOT_EMPTY, RootMissingError, root_problem
from memoryd.folder.rules import FolderRules
from memoryd.ports import FileLog, FolderState
from services.workspace.parallel import total
from services.workspace.reconcile import Reconciler
from services.workspace.settings import WorkspaceServiceSettings
from services.workspace.watcher import WatchedFolder, Watcher
from services.workspace.worker import Worker


class WorkspaceService:
    """Keeps the file log in line with folders of Markdown. It is the only writer of these workspaces' file states."""

    def __init__(
        self,
        roots: Mapping[Scope, Path],
        log: FileLog,
        settings: WorkspaceServiceSettings,
        rules: Mapping[Scope, FolderRules] | None = None,
    ) -> None:
        """Take the workspaces' folders.

        Args:
            roots: their own ones.
            log: the file log.
            settings: of all workspaces.
            rules: what is read of each; without, that is what the settings say.
        """
        self._roots = dict(roots)
        slots = asyncio.Semaphore(settings.concurrency)
        rules = rules or dict.fromkeys(roots, settings.rules)
        self._workers = {
            scope: Worker(Reconciler(scope, root, log, settings, rules[scope]), settings, slots)
            for scope, root in self._roots.items()
        }
        folders = [WatchedFolder(scope, root) for scope, root in self._roots.items()]
        folders += [
            WatchedFolder(scope, extra.root, f"{extra.name}/") for scope in self._roots for extra in rules[scope].extras
        ]
        self._watcher = Watcher(folders, settings, self._on_change)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read all folders and put what differs, then go on watching.

        A folder that can't be read is an alarm (`problem`), no error. Raises what the file log raises.
        """
        await self._watcher.start()  # first, so that no change is missed in between
        try:
            await total(self._workers.values(), _scan, max(1, len(self._workers)))
        except BaseException:
            await self.close()
            raise
        self._tasks = [
            asyncio.create_task(worker.run(), name=f"workspace {scope}") for scope, worker in self._workers.items()
        ]

    async def sync(self, scope: Scope, timeout: float) -> int:
        """Read all files of a workspace and put what differs; returns how many states were put.

        Calls that come at the same time share one run.

        Raises NotFoundError (no such workspace here), UnavailableError (its folder can't be read),
        DeadlineExceededError after `timeout` seconds (what was put until then stays), and what the file log raises.
        """
        worker = self._workers[self._known(scope)]
        try:
            async with asyncio.timeout(timeout):
                return await worker.sync()
        except RootMissingError as error:
            problem = error.problem
            raise UnavailableError(problem.detail, reason=problem.reason) from error
        except TimeoutError as error:
            raise DeadlineExceededError(
                f"comparing {scope} with its folder took longer than {timeout:g} s; it goes on by itself"
            ) from error

    async def state(self, scope: Scope) -> FolderState:
        """Tell whether the workspace's folder can be read, and when all of it last was. Raises NotFoundError."""
        problem = await asyncio.to_thread(root_problem, self._roots[self._known(scope)])
        worker = self._workers[scope]
        found = worker.problem
        empty = found if found is not None and found.reason == ROOT_EMPTY else None
        return FolderState(problem or empty, worker.reconciled)

    async def close(self) -> None:
        """Stop watching; a state that is being put is put or not, nothing else."""
        await self._watcher.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            await worker.close()

    def _on_change(self, scope: Scope, paths: frozenset[str]) -> None:
        self._workers[scope].mark(paths)

    def _known(self, scope: Scope) -> Scope:
        if scope not in self._roots:
            raise NotFoundError(f"no folder is configured for the workspace {scope}; add it to the configuration")
        return scope


async def _scan(worker: Worker) -> int:
    with contextlib.suppress(RootMissingError):
        return await worker.reconcile()
    return 0
