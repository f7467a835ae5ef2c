"""A watcher that dies, that is not told everything, and what it sees of single files."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest
from prometheus_client import REGISTRY
from watchfiles._rust_notify import RustNotify

from services.workspace import watcher
from services.workspace.coverage import unwatched
from services.workspace.service import WorkspaceService
from tests.support.eventually import eventually
from tests.support.privileges import nobodys_threads, open_folder
from tests.unit.workspace.conftest import SCOPE, SETTINGS, Folder


def restarts(cause: str) -> float:
    return REGISTRY.get_sample_value("memoryd_workspace_watcher_restarts_total", {"cause": cause}) or 0.0


def watch(*folders: Path) -> RustNotify:
    return RustNotify(list(map(str, folders)), False, False, 0, True, True)


def test_folders_without_a_watch_are_found(tmp_path: Path) -> None:
    for path in ("root/a/b", "root/.git/x", "other"):
        (tmp_path / path).mkdir(parents=True)
    root = tmp_path / "root"
    assert unwatched([str(root)]) == frozenset()  # not one of ours
    with watch(root):
        assert unwatched([str(root)]) == frozenset()
        (tmp_path / "other").rename(root / "moved")
    with watch(root / "a"):
        assert unwatched([str(root)]) == frozenset()  # the root itself is not watched
        assert unwatched([str(root / "a")]) == frozenset()


class Deaf:
    """A watch that misses what happens in a folder, as after an overflow: there only the root is watched."""

    def __init__(self, folders: list[str], *options: Any) -> None:  # noqa: ANN401  (the library's)
        debug, polling, delay, _, ignore = options
        self.inner = RustNotify(folders, debug, polling, delay, False, ignore)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.inner.close()

    def watch(self, *arguments: Any) -> Any:  # noqa: ANN401  (the library's)
        return self.inner.watch(*arguments)


async def test_folders_that_are_not_watched_have_the_watch_begin_anew(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("deep/er/a.md", "first\n")
    monkeypatch.setattr(watcher, "RustNotify", Deaf)
    service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS.model_copy(update={"coverage_seconds": 0.1}))
    before = restarts("unwatched")
    await service.start()
    monkeypatch.undo()
    folder.write("deep/er/a.md", "unseen\n")

    async def begun() -> bool:
        return restarts("unwatched") > before

    await eventually(begun, True)
    await folder.shows({"deep/er/a.md": "unseen\n"})
    folder.write("deep/er/a.md", "seen\n")
    await folder.shows({"deep/er/a.md": "seen\n"})
    await service.close()


async def test_after_very_many_changes_the_whole_folder_is_looked_through(folder: Folder, tmp_path: Path) -> None:
    """Some may have been dropped, and those that were told may all be of hidden files."""
    for number in range(3_000):
        folder.write(f".git/{number}")
    told: list[frozenset[str]] = []
    settings = SETTINGS.model_copy(update={"debounce_ms": 1_000, "max_debounce_ms": 5_000})
    watch = watcher.Watcher([watcher.WatchedFolder(SCOPE, folder.root)], settings, lambda _, paths: told.append(paths))
    await watch.start()
    (folder.root / ".git").rename(tmp_path / "away")
    shutil.copytree(tmp_path / "away", folder.root / ".git")

    async def all_of_it() -> bool:
        return frozenset() in told

    await eventually(all_of_it, True)
    await watch.close()


async def test_a_watch_that_fails_is_tried_again_and_nothing_is_missed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError("OS file watch limit reached."), RuntimeError("the watch died")]

    def dying(*arguments: Any) -> RustNotify:  # noqa: ANN401  (the library's)
        if failures:
            raise failures.pop()
        return RustNotify(*arguments)

    before = restarts("failure")
    monkeypatch.setattr(watcher, "RustNotify", dying)
    monkeypatch.setattr(watcher, "_FIRST_PAUSE", 0.05)
    service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS)
    await service.start()
    folder.write("a.md")  # nobody watches yet
    await folder.shows({"a.md": "text\n"})

    async def failed() -> int:
        return int(restarts("failure") - before)

    await eventually(failed, 2)
    folder.write("b.md")
    await folder.shows({"a.md": "text\n", "b.md": "text\n"})
    await service.close()


@pytest.fixture
async def watched(folder: Folder) -> AsyncIterator[Folder]:
    folder.write("note.md")
    service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS)
    await service.start()
    yield folder
    await service.close()


async def test_a_rename_of_letter_case(watched: Folder) -> None:
    (watched.root / "note.md").rename(watched.root / "Note.md")
    await watched.shows({"Note.md": "text\n"})


async def test_names_links_and_clashes(watched: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret\n")
    os.link(watched.root / "note.md", watched.root / "z.md")
    (watched.root / "in.md").symlink_to("note.md")
    (watched.root / "out.md").symlink_to(tmp_path / "outside.md")
    watched.write("caf\u00e9.md", "one\n")
    watched.write("cafe\u0301.md", "two\n")
    await watched.shows({"note.md": "text\n", "caf\u00e9.md": "NAME_CLASH"})
    (watched.root / "note.md").unlink()
    (watched.root / "cafe\u0301.md").unlink()
    await watched.shows({"z.md": "text\n", "caf\u00e9.md": "one\n"})


async def test_a_file_that_can_not_be_read_now_and_can_later(tmp_path: Path, folder: Folder) -> None:
    asyncio.get_running_loop().set_default_executor(nobodys_threads())
    with open_folder() as root:
        closed = Folder(root, folder.log)
        file = closed.write("a.md")
        service = WorkspaceService({SCOPE: root}, folder.log, SETTINGS)
        await service.start()
        file.chmod(0)
        await closed.shows({"a.md": "UNREADABLE"})
        file.chmod(0o644)
        await closed.shows({"a.md": "text\n"})
        await service.close()
