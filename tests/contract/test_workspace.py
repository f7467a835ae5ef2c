"""What every workspace does."""

import hashlib
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.domain.files import FileKey, FileState, Problem
from memoryd.domain.names import Scope
from memoryd.domain.plans import BLOCKED
from memoryd.errors import DeadlineExceededError, NotFoundError, UnavailableError
from memoryd.folder.rules import FolderRules
from memoryd.ports import FileLog, Workspace, WorkspaceFile
from tests.contract.registry import WORKSPACES

SCOPE = Scope("local", "notes")
OTHER = Scope("local", "other")
LIMIT = 50_000


@dataclass(frozen=True)
class Served:
    """A workspace behind the port, and its folder."""

    workspace: Workspace
    root: Path
    other: Path

    def write(self, path: str, data: bytes = b"text\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    async def read(self, path: str) -> WorkspaceFile | None:
        await self.workspace.sync(SCOPE, 30)
        return await self.workspace.read(SCOPE, path)

    async def text(self, path: str) -> str:
        file = await self.read(path)
        assert file is not None
        return file.text


@pytest.fixture(params=sorted(WORKSPACES))
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    roots = {SCOPE: tmp_path / "root", OTHER: tmp_path / "other"}
    for root in roots.values():
        root.mkdir()
    async with WORKSPACES[request.param](roots, FolderRules(max_bytes=LIMIT), tmp_path) as workspace:
        yield Served(workspace, roots[SCOPE], roots[OTHER])


async def test_a_file_is_read_with_its_hash(served: Served) -> None:
    data = "# Über\r\n\r\n会议 🗓\n".encode()
    served.write("memory/a.md", data)
    file = await served.read("memory/a.md")
    assert file == WorkspaceFile("# Über\r\n\r\n会议 🗓\n", hashlib.sha256(data).hexdigest(), private=False)


async def test_an_empty_file_is_there(served: Served) -> None:
    served.write("a.md", b"")
    assert await served.text("a.md") == ""


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        pytest.param("a.md", "memory/2031-01-01.md", id="get-missing"),
        pytest.param("SYNTAX.md", "NTAX.md", id="get-suffix"),
        pytest.param("memory/a.md", "a.md", id="last-part"),
        pytest.param("memory/a.md", "memory/a.md/b.md", id="below-a-file"),
        pytest.param("memory/a.md", "Memory/a.md", id="letter-case"),
        pytest.param("a.md", "x" * 300 + ".md", id="name-too-long"),
        pytest.param("a.md", "x/" * 3000 + "a.md", id="path-too-long"),
        pytest.param(".git/a.md", ".git/a.md", id="hidden"),
        pytest.param("node_modules/p/a.md", "node_modules/p/a.md", id="packages"),
        pytest.param("folder.md/a.txt", "folder.md", id="folder"),
        pytest.param("sessions/a.jsonl", "sessions/a.jsonl", id="transcript"),
    ],
)
async def test_what_is_not_there_or_may_not_be_read_is_none(served: Served, written: str, asked: str) -> None:
    served.write(written)
    assert await served.read(asked) is None


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
async def test_similar_names_are_different_files(served: Served, files: dict[str, str]) -> None:
    for path, text in files.items():
        served.write(path, text.encode())
    assert {path: await served.text(path) for path in files} == files


async def test_a_path_in_nfc_finds_a_name_on_disk_that_is_not(served: Served) -> None:
    served.write("cafe\u0301/the\u0301.md", b"tea\n")
    assert await served.text("caf\u00e9/th\u00e9.md") == "tea\n"


async def test_links_that_leave_the_workspace_are_none(served: Served) -> None:
    (served.other / "secret.md").write_text("secret\n")
    (served.root / "file.md").symlink_to(served.other / "secret.md")
    (served.root / "folder").symlink_to(served.other)
    (served.root / "up.md").symlink_to("../other/secret.md")
    for path in ("file.md", "folder/secret.md", "up.md"):
        assert await served.read(path) is None


async def test_a_link_to_a_hidden_file_is_none(served: Served) -> None:
    served.write(".secret/a.md")
    (served.root / "a.md").symlink_to(".secret/a.md")
    assert await served.read("a.md") is None


async def test_a_pipe_is_none_and_does_not_block(served: Served) -> None:
    os.mkfifo(served.root / "pipe.md")
    assert await served.read("pipe.md") is None


@pytest.mark.parametrize("data", [b"x" * (LIMIT + 1), b"a\0b"])
async def test_a_file_that_is_set_aside_is_none(served: Served, data: bytes) -> None:
    served.write("a.md", data)
    assert await served.read("a.md") is None


async def test_a_file_of_the_greatest_size_is_read(served: Served) -> None:
    served.write("a.md", b"x" * LIMIT)
    assert len(await served.text("a.md")) == LIMIT


async def test_bytes_that_are_not_utf_8_are_replaced_and_a_byte_order_mark_is_dropped(served: Served) -> None:
    served.write("a.md", b"\xef\xbb\xbfcaf\xe9 au lait\n")
    assert await served.text("a.md") == "caf\ufffd au lait\n"


async def test_long_term_memory_is_private(served: Served) -> None:
    for path in ("MEMORY.md", "USER.md", "SOUL.md"):
        served.write(path)
    files = {path: await served.read(path) for path in ("MEMORY.md", "USER.md", "SOUL.md")}
    assert {path: file and file.private for path, file in files.items()} == {
        "MEMORY.md": True,
        "USER.md": True,
        "SOUL.md": False,
    }


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("---\nprivate: true\n---\nx\n", True),
        ("\ufeff---\nprivate: yes\ntags: [a]\n---\n", True),
        ("---\ntags: [a\nprivate: true\n---\nx\n", True),
        ("---\nprivate: true\n" + "x: y\n" * 9000 + "---\nx\n", True),
        ("---\nprivate: false\n---\nx\n", False),
        ("---\ntitle: a\n---\nprivate: true\n", False),
        ("x\n---\nprivate: true\n---\n", False),
    ],
)
async def test_a_file_may_say_that_it_is_private(served: Served, text: str, private: bool) -> None:
    served.write("a.md", text.encode())
    file = await served.read("a.md")
    assert file is not None
    assert file.private is private


async def test_no_other_name_is_a_way_around_privacy(served: Served) -> None:
    file = served.write("MEMORY.md")
    served.write("sub/b.md")
    (served.root / "link.md").symlink_to("MEMORY.md")
    (served.root / "again").symlink_to(".")
    os.link(file, served.root / "hard.md")
    for path in ("link.md", "again/MEMORY.md", "hard.md"):
        seen = await served.read(path)
        assert seen is None or seen.private


async def test_workspaces_do_not_see_each_other_s_files(served: Served) -> None:
    served.write("a.md")
    await served.workspace.sync(SCOPE, 30)
    assert await served.workspace.read(OTHER, "a.md") is None


async def test_sync_counts_what_it_put(served: Served) -> None:
    edited, deleted = served.write("a.md"), served.write("b.md")
    assert await served.workspace.sync(SCOPE, 30) == 2
    assert await served.workspace.sync(SCOPE, 30) == 0
    edited.write_text("edited\n")
    deleted.unlink()
    assert await served.workspace.sync(SCOPE, 30) == 2
    assert await served.workspace.sync(OTHER, 30) == 0
    assert await served.text("a.md") == "edited\n"
    assert await served.read("b.md") is None


async def test_a_blocked_file_is_not_read_though_it_is_in_its_folder(served: Served) -> None:
    served.write("a.md")
    assert await served.text("a.md") == "text\n"
    log: FileLog = vars(served.workspace)["_log"]  # whatever serves the workspace reads it
    key = FileKey(SCOPE, "a.md")
    logged = await log.get(key)
    assert logged is not None
    blocked = FileState(key, "", None, 1.7e9, private=True, problem=Problem(BLOCKED, "for a test"))
    revision = await log.put(blocked, expected=logged.revision, live=True)
    assert await served.read("a.md") is None
    await log.put(FileState.deletion(key, 1.7e9), expected=revision, live=True)
    assert await served.text("a.md") == "text\n"


async def test_sync_keeps_its_deadline(served: Served) -> None:
    for number in range(500):
        served.write(f"{number}.md")
    with pytest.raises(DeadlineExceededError):
        await served.workspace.sync(SCOPE, 0.001)


async def test_when_all_of_the_folder_was_last_read_is_told(served: Served) -> None:
    before = time.time()
    await served.workspace.sync(SCOPE, 30)
    first = (await served.workspace.state(SCOPE)).reconciled
    assert before <= first <= time.time()
    await served.workspace.sync(SCOPE, 30)
    assert (await served.workspace.state(SCOPE)).reconciled > first


async def test_a_missing_folder_is_a_problem_until_it_is_back(served: Served, tmp_path: Path) -> None:
    served.write("a.md")
    assert await served.workspace.sync(SCOPE, 30) == 1
    assert (await served.workspace.state(SCOPE)).problem is None
    served.root.rename(tmp_path / "away")
    problem = (await served.workspace.state(SCOPE)).problem
    assert problem is not None
    assert problem.reason == "ROOT_MISSING"
    with pytest.raises(UnavailableError, match="folder does not exist"):
        await served.workspace.sync(SCOPE, 30)
    assert (await served.workspace.state(OTHER)).problem is None
    (tmp_path / "away").rename(served.root)
    assert (await served.workspace.state(SCOPE)).problem is None
    assert await served.workspace.sync(SCOPE, 30) == 0
    assert await served.text("a.md") == "text\n"


async def test_an_unknown_workspace_is_told(served: Served) -> None:
    nobody = Scope("nobody", "notes")
    with pytest.raises(NotFoundError, match="nobody/notes"):
        await served.workspace.read(nobody, "a.md")
    with pytest.raises(NotFoundError, match="nobody/notes"):
        await served.workspace.state(nobody)
    with pytest.raises(NotFoundError, match="nobody/notes"):
        await served.workspace.sync(nobody, 30)
