import asyncio
import itertools
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.domain.files import FileKey, FileState, Problem, Revision
from memoryd.domain.names import Scope
from memoryd.errors import DeadlineExceededError, NotFoundError, UnavailableError
from services.workspace.service import WorkspaceService
from services.workspace.settings import WorkspaceServiceSettings
from tests.support.eventually import eventually
from tests.support.privileges import nobodys_threads, open_folder
from tests.unit.workspace.conftest import SCOPE, SETTINGS, Folder


@pytest.fixture(params=["system", "polling"])
async def watched(request: pytest.FixtureRequest, folder: Folder) -> AsyncIterator[Folder]:
    """A watched folder that holds a.md; by both ways of watching."""
    folder.write("a.md", "first\n")
    settings = SETTINGS.model_copy(update={"polling": request.param == "polling", "poll_ms": 100})
    service = WorkspaceService({SCOPE: folder.root}, folder.log, settings)
    await service.start()
    yield folder
    async with asyncio.timeout(30):
        await service.close()


async def test_start_reads_what_is_there_and_what_went_meanwhile(folder: Folder, service: WorkspaceService) -> None:
    folder.write("a.md")
    folder.write("b.md")
    before = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS)
    await before.start()
    await before.close()
    (folder.root / "a.md").unlink()
    await service.start()
    assert await folder.states() == {"a.md": "deleted", "b.md": "text\n"}


async def test_an_edit_a_new_file_and_a_deletion_are_seen(watched: Folder) -> None:
    watched.write("a.md", "second\n")
    watched.write("b.md", "new\n")
    await watched.shows({"a.md": "second\n", "b.md": "new\n"})
    (watched.root / "a.md").unlink()
    await watched.shows({"b.md": "new\n"})


@pytest.mark.parametrize("case", [pytest.param("rename", id="rename")])
async def test_an_atomic_save_and_then_a_rename_leave_no_ghost(watched: Folder, case: str) -> None:
    (watched.root / "memory").mkdir()
    temporary = watched.write(".tmp-save", "saved\n")
    temporary.replace(watched.root / "memory/a.md")
    await watched.shows({"a.md": "first\n", "memory/a.md": "saved\n"})
    (watched.root / "memory/a.md").rename(watched.root / "memory/b.md")
    await watched.shows({"a.md": "first\n", "memory/b.md": "saved\n"})


@pytest.mark.parametrize("case", [pytest.param("late-folder", id="late-folder")])
async def test_a_file_in_a_folder_that_came_later_is_found(watched: Folder, case: str) -> None:
    (watched.root / "memory").mkdir()
    watched.write("memory/a.md", "late\n")
    await watched.shows({"a.md": "first\n", "memory/a.md": "late\n"})
    watched.write("memory/deep/er/b.md", "later\n")
    await watched.shows({"a.md": "first\n", "memory/a.md": "late\n", "memory/deep/er/b.md": "later\n"})
    watched.write("memory/deep/er/b.md", "edited\n")
    await watched.shows({"a.md": "first\n", "memory/a.md": "late\n", "memory/deep/er/b.md": "edited\n"})


@pytest.mark.parametrize("suffix", ["~", ".tmp", ".sb-1234", ".swp.md"])
async def test_an_editor_s_atomic_save_ends_with_the_new_text(watched: Folder, suffix: str) -> None:
    file = watched.root / "a.md"
    for version in ("second\n", "third\n"):
        temporary = watched.write(f"a.md{suffix}", version)
        temporary.replace(file)
    await watched.shows({"a.md": "third\n"})


async def test_a_save_through_a_backup_ends_with_the_new_text(watched: Folder) -> None:
    file = watched.root / "a.md"
    file.rename(watched.root / "a.md~")
    watched.write("a.md", "second\n")
    (watched.root / "a.md~").unlink()
    await watched.shows({"a.md": "second\n"})


async def test_a_moved_folder_moves_its_files(watched: Folder, tmp_path: Path) -> None:
    for number in range(5):
        watched.write(f"old/sub/{number}.md")
    await watched.shows({"a.md": "first\n"} | {f"old/sub/{number}.md": "text\n" for number in range(5)})
    (watched.root / "old").rename(watched.root / "new")
    await watched.shows({"a.md": "first\n"} | {f"new/sub/{number}.md": "text\n" for number in range(5)})
    watched.write("new/sub/0.md", "edited\n")
    (watched.root / "new/sub/1.md").unlink()
    rest = {f"new/sub/{number}.md": "text\n" for number in (2, 3, 4)}
    await watched.shows({"a.md": "first\n", "new/sub/0.md": "edited\n"} | rest)
    (watched.root / "new").rename(tmp_path / "outside")
    await watched.shows({"a.md": "first\n"})


async def test_a_folder_moved_in_is_read(watched: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.md").write_text("moved in\n")
    outside.rename(watched.root / "inside")
    await watched.shows({"a.md": "first\n", "inside/b.md": "moved in\n"})


async def test_a_burst_of_writes_and_deletions_ends_as_the_folder_ends(watched: Folder) -> None:
    for turn in range(30):
        for number in range(10):
            watched.write(f"burst/{number}.md", f"{turn}\n")
        if turn % 3 == 0:
            shutil.rmtree(watched.root / "burst")
    (watched.root / "burst/0.md").unlink()
    await watched.shows({"a.md": "first\n"} | {f"burst/{number}.md": "29\n" for number in range(1, 10)})


async def test_hidden_files_and_other_types_are_not_put(watched: Folder) -> None:
    watched.write(".git/x.md")
    watched.write("x.txt")
    watched.write("z.md")
    await watched.shows({"a.md": "first\n", "z.md": "text\n"})
    assert set(await watched.states()) == {"a.md", "z.md"}


async def test_a_root_that_vanishes_and_returns(folder: Folder, service: WorkspaceService, tmp_path: Path) -> None:
    folder.write("a.md")
    folder.write("b.md")
    await service.start()
    folder.root.rename(tmp_path / "away")

    async def reason() -> str:
        problem = (await service.state(SCOPE)).problem
        return problem.reason if problem else ""

    await eventually(reason, "ROOT_MISSING")
    with pytest.raises(UnavailableError, match="does not exist") as refused:
        await service.sync(SCOPE, 30)
    assert refused.value.reason == "ROOT_MISSING"
    assert await folder.states() == {"a.md": "text\n", "b.md": "text\n"}
    (tmp_path / "away/a.md").unlink()
    (tmp_path / "away").rename(folder.root)
    await folder.shows({"b.md": "text\n"})
    folder.write("c.md")
    await folder.shows({"b.md": "text\n", "c.md": "text\n"})
    assert (await service.state(SCOPE)).problem is None


async def test_a_root_that_is_replaced_by_another_folder(folder: Folder, service: WorkspaceService) -> None:
    folder.write("a.md")
    await service.start()
    shutil.rmtree(folder.root)
    folder.root.mkdir()
    folder.write("b.md")
    await folder.shows({"b.md": "text\n"})
    folder.write("b.md", "edited\n")
    await folder.shows({"b.md": "edited\n"})


async def test_a_root_that_comes_only_after_start(folder: Folder, service: WorkspaceService) -> None:
    folder.root.rmdir()
    await service.start()
    problem = (await service.state(SCOPE)).problem
    assert isinstance(problem, Problem)
    assert problem.reason == "ROOT_MISSING"
    folder.write("a.md")
    await folder.shows({"a.md": "text\n"})


async def test_one_missing_root_does_not_keep_others_from_being_watched(folder: Folder, tmp_path: Path) -> None:
    roots = {Scope("local", "missing"): tmp_path / "missing", SCOPE: folder.root}
    service = WorkspaceService(roots, folder.log, SETTINGS)
    await service.start()
    folder.write("a.md")
    await folder.shows({"a.md": "text\n"})
    await service.close()


async def test_workspaces_do_not_mix(folder: Folder, tmp_path: Path) -> None:
    other = Scope("local", "other")
    (tmp_path / "root-2").mkdir()
    service = WorkspaceService({SCOPE: folder.root, other: tmp_path / "root-2"}, folder.log, SETTINGS)
    await service.start()
    folder.write("a.md")
    (tmp_path / "root-2/b.md").write_text("other\n")
    await folder.shows({"a.md": "text\n"})

    async def paths() -> list[str]:
        return [logged.state.key.path async for logged in folder.log.scan(other)]

    await eventually(paths, ["b.md"])
    await service.close()


async def test_the_interval_finds_what_no_event_told(folder: Folder) -> None:
    """A store that somebody else wrote into raises no event."""
    folder.write("a.md")
    settings = SETTINGS.model_copy(update={"reconcile_seconds": 0.2})
    service = WorkspaceService({SCOPE: folder.root}, folder.log, settings)
    await service.start()
    [logged] = [file async for file in folder.log.scan(SCOPE)]
    await folder.log.put(FileState.deletion(logged.state.key, 0.0), expected=logged.revision, live=False)
    await folder.shows({"a.md": "text\n"})
    await service.close()


@pytest.mark.parametrize("polling", [False, True], ids=["events", "polling"])
async def test_the_interval_comes_although_changes_never_cease(folder: Folder, polling: bool) -> None:
    file = folder.write("a.md", "first\n")
    before = file.stat()
    settings = {"reconcile_seconds": 0.5, "polling": polling, "poll_ms": 50}
    service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS.model_copy(update=settings))
    await service.start()

    async def edit() -> None:
        for number in itertools.count():
            folder.write("busy.md", f"{number}\n")
            await asyncio.sleep(0.05)

    editing = asyncio.create_task(edit())
    # Another log lost the file: nothing in the folder tells of that.
    logged = await folder.log.get(FileKey(SCOPE, "a.md"))
    assert logged is not None
    await folder.log.put(FileState.deletion(logged.state.key, 0.0), expected=logged.revision, live=False)
    assert file.stat().st_mtime_ns == before.st_mtime_ns

    async def text() -> str:
        return (await folder.states())["a.md"]

    await eventually(text, "first\n")
    editing.cancel()
    await service.close()


async def test_sync_reads_everything_now(folder: Folder, service: WorkspaceService) -> None:
    folder.write("a.md")
    assert await service.sync(SCOPE, 30) == 1
    assert await service.sync(SCOPE, 30) == 0


async def test_sync_keeps_its_deadline(folder: Folder, service: WorkspaceService) -> None:
    for number in range(2000):
        folder.write(f"{number}.md")
    with pytest.raises(DeadlineExceededError, match="local/notes"):
        await service.sync(SCOPE, 0.001)


async def test_an_unknown_workspace_is_told(service: WorkspaceService) -> None:
    with pytest.raises(NotFoundError, match="local/nobody"):
        await service.sync(Scope("local", "nobody"), 30)
    with pytest.raises(NotFoundError, match="local/nobody"):
        await service.state(Scope("local", "nobody"))


class FailingLog(SqliteFileLog):
    """A log that does not answer for some time."""

    failures = 0

    async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
        if self.failures > 0:
            self.failures -= 1
            raise UnavailableError("the file log does not answer")
        return await super().put(state, expected=expected, live=live)


async def test_changes_are_not_lost_while_the_log_does_not_answer(folder: Folder, tmp_path: Path) -> None:
    log = await FailingLog.open(tmp_path / "failing.db")
    assert isinstance(log, FailingLog)
    service = WorkspaceService({SCOPE: folder.root}, log, SETTINGS)
    await service.start()
    log.failures = 2
    folder.write("a.md")
    await Folder(folder.root, log).shows({"a.md": "text\n"})
    assert log.failures == 0
    await service.close()
    await log.close()


async def test_a_start_that_fails_leaves_nothing_running(folder: Folder, tmp_path: Path) -> None:
    log = await FailingLog.open(tmp_path / "failing.db")
    assert isinstance(log, FailingLog)
    log.failures = 1000
    folder.write("a.md")
    service = WorkspaceService({SCOPE: folder.root}, log, SETTINGS)
    with pytest.raises(UnavailableError):
        await service.start()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    await service.close()  # as its owner does, who can't know
    await log.close()


async def test_a_name_that_the_watcher_can_not_tell_does_not_stop_it(folder: Folder, service: WorkspaceService) -> None:
    await service.start()
    (folder.root / os.fsdecode(b"latin-\xe9.md")).write_text("x")
    await folder.shows({"latin-\ufffd.md": "UNREADABLE"})
    folder.write("a.md")
    await folder.shows({"latin-\ufffd.md": "UNREADABLE", "a.md": "text\n"})


def test_settings_are_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_WORKSPACE_DEBOUNCE_MS", "500")
    monkeypatch.setenv("MEMORYD_WORKSPACE_PRIVATE", '["secret/**"]')
    settings = WorkspaceServiceSettings()
    assert settings.debounce_ms == 500
    assert settings.rules.private == ("secret/**",)


async def test_a_folder_that_can_not_be_listed_is_named_until_it_can(tmp_path: Path) -> None:
    """Its files keep what is known of them meanwhile."""
    asyncio.get_running_loop().set_default_executor(nobodys_threads())
    with open_folder() as place:
        folder = Folder(place / "root", await SqliteFileLog.open(tmp_path / "log.db"))
        folder.write("closed/a.md")
        folder.write("b.md")
        (folder.root / "closed").chmod(0o755)
        service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS)
        assert await service.sync(SCOPE, 30) == 2
        (folder.root / "closed").chmod(0)
        assert await service.sync(SCOPE, 30) == 2
        assert await folder.live() == {"b.md": "text\n", "closed/": "UNREADABLE", "closed/a.md": "UNREADABLE"}
        assert await service.sync(SCOPE, 30) == 0
        (folder.root / "closed").chmod(0o755)
        assert await service.sync(SCOPE, 30) == 2
        assert await folder.live() == {"b.md": "text\n", "closed/a.md": "text\n"}
        await service.close()
        await folder.log.close()
