import hashlib
import os
import shutil
from pathlib import Path

import pytest

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.domain.files import FileKey, FileState, Revision
from memoryd.folder.root import RootEmptyError, RootMissingError
from memoryd.folder.rules import FolderRules
from services.workspace.reconcile import Reconciler
from services.workspace.settings import WorkspaceServiceSettings
from tests.unit.workspace.conftest import SCOPE, SETTINGS, Folder


@pytest.fixture
def reconciler(folder: Folder) -> Reconciler:
    return Reconciler(SCOPE, folder.root, folder.log, SETTINGS)


async def full(reconciler: Reconciler) -> int:
    reconciler.forget()
    return await reconciler.reconcile(reload=True, live=False)


async def state(log: SqliteFileLog, path: str) -> FileState:
    logged = await log.get(FileKey(SCOPE, path))
    assert logged is not None
    return logged.state


async def test_a_folder_is_put_once(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("MEMORY.md", "one\n")
    folder.write("memory/a.md", "two\n")
    assert await full(reconciler) == 2
    assert await folder.states() == {"MEMORY.md": "one\n", "memory/a.md": "two\n"}
    assert await full(reconciler) == 0
    again = Reconciler(SCOPE, folder.root, folder.log, SETTINGS)
    assert await full(again) == 0


async def test_a_state_tells_hash_time_and_flags(folder: Folder, reconciler: Reconciler) -> None:
    file = folder.write("MEMORY.md")
    file.write_bytes(b"caf\xe9 au lait\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    await full(reconciler)
    seen = await state(folder.log, "MEMORY.md")
    assert seen.hash == hashlib.sha256(b"caf\xe9 au lait\n").hexdigest()
    assert seen.content == "caf\ufffd au lait\n".encode()
    assert seen.modified == 1_700_000_000
    assert (seen.private, seen.lossy, seen.deleted) == (True, True, False)


async def test_an_empty_folder_and_an_empty_file(folder: Folder, reconciler: Reconciler) -> None:
    assert await full(reconciler) == 0
    folder.write("a.md", "")
    assert await full(reconciler) == 1
    assert await folder.states() == {"a.md": ""}


async def test_a_new_modification_time_alone_changes_nothing(folder: Folder, reconciler: Reconciler) -> None:
    file = folder.write("a.md")
    await full(reconciler)
    os.utime(file, (1, 1))
    assert await full(reconciler) == 0


async def test_a_file_that_is_gone_is_deleted_and_comes_back(folder: Folder, reconciler: Reconciler) -> None:
    file = folder.write("a.md")
    await full(reconciler)
    file.unlink()
    assert await full(reconciler) == 1
    assert await full(reconciler) == 0
    assert await folder.states() == {"a.md": "deleted"}
    folder.write("a.md")
    assert await full(reconciler) == 1
    assert await folder.states() == {"a.md": "text\n"}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {
                "memory/Note.md": "one\n",
                "memory/note.md": "two\n",
                "memory/2026_06_16.md": "x\n",
                "memory/2026-06-16.md": "y\n",
            },
            id="case-names",
        )
    ],
)
async def test_similar_names_are_different_files(folder: Folder, reconciler: Reconciler, files: dict[str, str]) -> None:
    for path, text in files.items():
        folder.write(path, text)
    assert await full(reconciler) == 4
    assert await folder.states() == files


async def test_a_rename_of_letter_case_is_a_deletion_and_a_new_file(folder: Folder, reconciler: Reconciler) -> None:
    file = folder.write("note.md")
    await full(reconciler)
    file.rename(folder.root / "Note.md")
    assert await full(reconciler) == 2
    assert await folder.states() == {"Note.md": "text\n", "note.md": "deleted"}


async def test_names_are_kept_as_nfc_and_opened_as_they_are(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("cafe\u0301/the\u0301.md", "tea\n")
    await full(reconciler)
    assert await folder.states() == {"caf\u00e9/th\u00e9.md": "tea\n"}


async def test_a_clash_of_names_is_set_aside_until_one_is_gone(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("caf\u00e9.md", "one\n")
    await full(reconciler)
    other = folder.write("cafe\u0301.md", "two\n")
    await reconciler.reconcile(reload=False, live=True)
    assert await folder.states() == {"caf\u00e9.md": "NAME_CLASH"}
    other.unlink()
    await reconciler.reconcile(reload=False, live=True)
    assert await folder.states() == {"caf\u00e9.md": "one\n"}


async def test_what_can_not_be_indexed_is_set_aside_with_its_reason(folder: Folder) -> None:
    reconciler = Reconciler(SCOPE, folder.root, folder.log, WorkspaceServiceSettings(max_file_bytes=100))
    folder.write("large.md", "x" * 101)
    folder.write("binary.md", "a\0b")
    os.mkfifo(folder.root / "pipe.md")
    (folder.root / "folder.md").mkdir()
    wanted = {"large.md": "TOO_LARGE", "binary.md": "BINARY", "pipe.md": "UNREADABLE"}
    assert await full(reconciler) == 3
    assert await folder.states() == wanted
    assert await full(reconciler) == 0
    folder.write("large.md", "x" * 99)
    assert await reconciler.reconcile(reload=False, live=True) == 1
    assert await folder.states() == wanted | {"large.md": "x" * 99}


async def test_a_second_name_takes_over_when_the_first_is_gone(folder: Folder, reconciler: Reconciler) -> None:
    first = folder.write("a.md")
    os.link(first, folder.root / "b.md")
    await full(reconciler)
    assert await folder.states() == {"a.md": "text\n"}
    first.unlink()
    await reconciler.reconcile(reload=False, live=True)
    assert await folder.states() == {"a.md": "deleted", "b.md": "text\n"}


async def test_a_file_becomes_private_when_a_private_link_leads_to_it(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("notes.md")
    await full(reconciler)
    (folder.root / "USER.md").symlink_to("notes.md")
    assert await reconciler.reconcile(reload=False, live=True) == 1
    assert (await state(folder.log, "notes.md")).private


async def test_a_file_that_becomes_a_link_out_or_a_folder_is_deleted(
    folder: Folder, reconciler: Reconciler, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("secret\n")
    for path in ("a.md", "b.md"):
        folder.write(path)
    await full(reconciler)
    for path in ("a.md", "b.md"):
        (folder.root / path).unlink()
    (folder.root / "a.md").symlink_to(tmp_path / "secret.md")
    (folder.root / "b.md").mkdir()
    await full(reconciler)
    assert await folder.states() == {"a.md": "deleted", "b.md": "deleted"}


async def test_a_file_that_is_left_out_by_new_globs_is_deleted(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("drafts/a.md")
    await full(reconciler)
    changed = Reconciler(SCOPE, folder.root, folder.log, WorkspaceServiceSettings(exclude=("drafts/**",)))
    await full(changed)
    assert await folder.states() == {"drafts/a.md": "deleted"}


async def test_a_changed_privacy_glob_is_put_though_the_text_is_the_same(
    folder: Folder, reconciler: Reconciler
) -> None:
    folder.write("people/a.md")
    await full(reconciler)
    changed = Reconciler(SCOPE, folder.root, folder.log, WorkspaceServiceSettings(private=("people/**",)))
    assert await full(changed) == 1
    assert (await state(folder.log, "people/a.md")).private


async def test_a_missing_root_deletes_nothing(folder: Folder, reconciler: Reconciler, tmp_path: Path) -> None:
    folder.write("a.md")
    await full(reconciler)
    folder.root.rename(tmp_path / "away")
    with pytest.raises(RootMissingError):
        await full(reconciler)
    folder.root.write_text("not a folder")
    with pytest.raises(RootMissingError):
        await full(reconciler)
    assert await folder.states() == {"a.md": "text\n"}


async def test_an_empty_folder_in_the_place_of_a_full_one_deletes_nothing(
    folder: Folder, reconciler: Reconciler
) -> None:
    folder.write("a.md", "one\n")
    await full(reconciler)
    shutil.move(folder.root, folder.root.with_name("volume"))
    folder.root.mkdir()  # where the volume was mounted
    for one in (reconciler, Reconciler(SCOPE, folder.root, folder.log, SETTINGS)):
        with pytest.raises(RootEmptyError, match="is empty, but 1 of its files are known"):
            await full(one)
    assert await folder.states() == {"a.md": "one\n"}
    folder.write("b.md", "two\n")  # the sign that the deletions were meant
    assert await full(reconciler) == 2
    assert await folder.states() == {"a.md": "deleted", "b.md": "two\n"}


async def test_the_last_file_of_a_watched_folder_can_be_deleted(folder: Folder, reconciler: Reconciler) -> None:
    file = folder.write("a.md", "one\n")
    await full(reconciler)
    file.unlink()
    assert await full(reconciler) == 1


async def test_a_root_that_vanishes_while_it_is_read_deletes_nothing(folder: Folder, tmp_path: Path) -> None:
    """The first put takes the folder away, so that all later files are not found."""

    class Vanishing(SqliteFileLog):
        vanish = False

        async def put(self, state: FileState, *, expected: Revision | None, live: bool) -> Revision:
            if self.vanish:
                folder.root.rename(tmp_path / "away")
                self.vanish = False
            return await super().put(state, expected=expected, live=live)

    log = await Vanishing.open(tmp_path / "vanishing.db")
    assert isinstance(log, Vanishing)
    settings = SETTINGS.model_copy(update={"parallel_files": 1})
    reconciler = Reconciler(SCOPE, folder.root, log, settings)
    paths = [f"{number}.md" for number in range(10)]
    for path in paths:
        folder.write(path, "old\n")
    await full(reconciler)
    for path in paths:
        folder.write(path, "new\n")
    log.vanish = True
    with pytest.raises(RootMissingError):
        await full(reconciler)
    assert not [path for path, text in (await Folder(folder.root, log).states()).items() if text == "deleted"]
    await log.close()


async def test_a_put_by_somebody_else_is_answered_with_a_new_look(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("a.md", "right\n")
    await full(reconciler)
    key = FileKey(SCOPE, "a.md")
    logged = await folder.log.get(key)
    assert logged is not None
    stray = FileState(key, "0" * 64, b"stray\n", 0.0)
    await folder.log.put(stray, expected=logged.revision, live=False)
    assert await reconciler.reconcile(frozenset({"a.md"}), reload=False, live=True) == 0  # as it was last known
    folder.write("a.md", "newer\n")
    assert await reconciler.reconcile(reload=False, live=True) == 1
    assert await folder.states() == {"a.md": "newer\n"}


async def test_reading_the_log_again_finds_what_somebody_else_put(folder: Folder, reconciler: Reconciler) -> None:
    folder.write("a.md", "right\n")
    await full(reconciler)
    key = FileKey(SCOPE, "a.md")
    logged = await folder.log.get(key)
    assert logged is not None
    await folder.log.put(FileState.deletion(key, 0.0), expected=logged.revision, live=False)
    ghost = FileKey(SCOPE, "ghost.md")
    await folder.log.put(FileState(ghost, "0" * 64, b"x", 0.0), expected=None, live=False)
    assert await reconciler.reconcile(reload=True, live=False) == 2
    assert await folder.live() == {"a.md": "right\n"}


async def test_a_file_that_looks_the_same_is_read_again_only_when_touched_or_asked(
    folder: Folder, reconciler: Reconciler
) -> None:
    """Same size, times set back: only what a status can't show differs (its change time is out of a test's reach)."""
    file = folder.write("a.md", "one\n")
    await full(reconciler)
    seen = file.stat()
    file.write_text("two\n")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert await reconciler.reconcile(frozenset({"a.md"}), reload=False, live=True) == 1
    assert await folder.states() == {"a.md": "two\n"}


async def test_an_edit_overtakes_a_bulk_of_new_files(folder: Folder) -> None:
    reconciler = Reconciler(SCOPE, folder.root, folder.log, WorkspaceServiceSettings(live_limit=10))
    folder.write("edited.md")
    await full(reconciler)
    await folder.log.subscribe("indexer")
    for batch in range(5):
        names = frozenset(f"new-{batch}-{number}.md" for number in range(4))
        for name in names:
            folder.write(name)
        await reconciler.reconcile(names, reload=False, live=True)
    folder.write("edited.md", "edited\n")
    await reconciler.reconcile(frozenset({"edited.md"}), reload=False, live=True)
    deliveries = await folder.log.fetch("indexer", limit=100, timeout=5)
    paths = [delivery.file.state.key.path for delivery in deliveries]
    assert len(paths) == 21
    assert paths.index("edited.md") < 10  # a first batch is live, and what else a slow machine gives time for


async def test_a_bulk_of_changes_ends_early_where_something_is_pressing(folder: Folder, reconciler: Reconciler) -> None:
    for number in range(30):
        folder.write(f"bulk/{number:02}.md")
    await full(reconciler)
    await folder.log.subscribe("indexer")
    (folder.root / "bulk/29.md").unlink()
    for number in range(29):
        folder.write(f"bulk/{number:02}.md", "longer than before\n")
    looks = iter(range(30))

    put = await reconciler.reconcile(reload=True, live=False, pressing=lambda: next(looks) >= 10)

    assert (put, reconciler.unfinished) == (10, True)

    folder.write("edited.md")
    edited = frozenset({"edited.md"})
    put = await reconciler.reconcile(edited, reload=False, live=True, pressing=lambda: True)
    assert (put, reconciler.unfinished) == (1, True)
    (delivery,) = await folder.log.fetch("indexer", limit=100, timeout=5, live=True)
    assert delivery.file.state.key.path == "edited.md"

    put = await reconciler.reconcile(reload=False, live=False)
    assert (put, reconciler.unfinished) == (20, False)
    assert (await folder.states())["bulk/29.md"] == "deleted"
    assert await full(reconciler) == 0


async def test_a_scan_that_ends_early_leaves_out_no_transcript(folder: Folder) -> None:
    rules = FolderRules(sessions=True)
    reconciler = Reconciler(SCOPE, folder.root, folder.log, SETTINGS, rules)
    folder.write("sessions/a.jsonl", '{"role": "user", "content": "one message, too little to be due"}\n')

    await reconciler.reconcile(reload=True, live=False, pressing=lambda: True)
    assert reconciler.unfinished
    await reconciler.reconcile(frozenset({"note.md"}), reload=False, live=True)

    assert "one message" in (await folder.states())["sessions/a.jsonl"]


async def test_twenty_thousand_files(folder: Folder, reconciler: Reconciler) -> None:
    for number in range(20_000):
        folder.write(f"memory/{number % 40}/{number}.md", f"note {number}\n")
    assert await full(reconciler) == 20_000
    folder.write("memory/7/7.md", "edited\n")
    (folder.root / "memory/8/8.md").unlink()
    assert await reconciler.reconcile(reload=True, live=True) == 2
    deleted = [logged.state.deleted async for logged in folder.log.scan(SCOPE)]
    assert (len(deleted), sum(deleted)) == (20_000, 1)
    assert (await state(folder.log, "memory/7/7.md")).content == b"edited\n"
    assert (await state(folder.log, "memory/8/8.md")).deleted
