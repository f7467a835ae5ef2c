"""When a folder is read: what runs one after the other, what is shared, and what comes between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from memoryd.folder.root import RootMissingError
from services.workspace import worker as worker_module
from services.workspace.reconcile import Reconciler
from services.workspace.worker import Worker
from tests.unit.workspace.conftest import SCOPE, SETTINGS, Folder


class Counting(Reconciler):
    """A reconciler whose runs are counted; each waits to be let go."""

    def __init__(self, folder: Folder) -> None:
        super().__init__(SCOPE, folder.root, folder.log, SETTINGS, SETTINGS.rules)
        self.runs, self.begun, self.go = 0, asyncio.Event(), asyncio.Event()

    async def reconcile(self, touched: frozenset[str] = frozenset(), **options: Any) -> int:  # noqa: ANN401  (passed on)
        self.runs += 1
        self.begun.set()
        await self.go.wait()
        return await super().reconcile(touched, **options)


async def test_an_edit_comes_between_a_bulk_of_changes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_PASS", 0.0)
    reconciler = Counting(folder)
    worker = Worker(reconciler, SETTINGS, asyncio.Semaphore(1))
    await folder.log.subscribe("indexer")
    for number in range(5):
        folder.write(f"bulk/{number}.md")
    scan = asyncio.create_task(worker.reconcile())
    await reconciler.begun.wait()
    folder.write("edited.md")
    worker.mark(frozenset({"edited.md"}))
    reconciler.go.set()

    assert await scan == 6  # one call went on to the end
    assert reconciler.runs == 2
    (delivery,) = await folder.log.fetch("indexer", limit=100, timeout=5, live=True)
    assert delivery.file.state.key.path == "edited.md"


async def test_only_reading_all_files_counts_as_such(folder: Folder) -> None:
    reconciler = Counting(folder)
    reconciler.go.set()
    worker = Worker(reconciler, SETTINGS, asyncio.Semaphore(1))
    assert worker.reconciled == 0
    await worker.reconcile()  # the first one knows no file yet
    first = worker.reconciled
    assert first > 0
    worker.mark(frozenset({"a.md"}))
    await worker.reconcile(live=True)
    assert worker.reconciled == first
    await worker.reconcile(full=True)
    assert worker.reconciled > first
    labels = {"tenant": SCOPE.tenant, "workspace": SCOPE.workspace}
    told = REGISTRY.get_sample_value("memoryd_workspace_reconciled_timestamp_seconds", labels)
    assert told == worker.reconciled
    await worker.close()


async def test_syncs_that_wait_for_one_that_runs_share_the_next(folder: Folder) -> None:
    reconciler = Counting(folder)
    worker = Worker(reconciler, SETTINGS, asyncio.Semaphore(1))
    folder.write("a.md")
    first = asyncio.create_task(worker.sync())
    await reconciler.begun.wait()
    others = [asyncio.create_task(worker.sync()) for _ in range(5)]
    await asyncio.sleep(0)
    others.pop().cancel()  # whoever goes away takes nothing from the others
    reconciler.go.set()
    folder.write("b.md")
    assert await first + (await asyncio.gather(*others))[0] == 2
    assert len({task.result() for task in others}) == 1
    assert reconciler.runs == 2
    await worker.close()


async def test_a_sync_that_fails_is_not_shared_with_those_that_come_later(folder: Folder, tmp_path: Path) -> None:
    reconciler = Counting(folder)
    reconciler.go.set()
    worker = Worker(reconciler, SETTINGS, asyncio.Semaphore(1))
    folder.root.rename(tmp_path / "away")
    for task in [asyncio.create_task(worker.sync()) for _ in range(2)]:
        with pytest.raises(RootMissingError):
            await task
    (tmp_path / "away").rename(folder.root)
    folder.write("a.md")
    assert await worker.sync() == 1
    await worker.close()
