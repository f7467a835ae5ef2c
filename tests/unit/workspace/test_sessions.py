"""Session transcripts and further folders in the workspace service."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.domain.files import FileKey, FileState, Source
from memoryd.folder.rules import Extra
from services.workspace.reconcile import Reconciler
from services.workspace.service import WorkspaceService
from tests.unit.workspace.conftest import SCOPE, SETTINGS, Folder

RULES = replace(SETTINGS.rules, sessions=True)
PATH = "sessions/s.jsonl"


def messages(count: int, text: str = "x") -> str:
    return "".join(json.dumps({"role": "user", "content": f"{text}{n}"}) + "\n" for n in range(count))


def append(folder: Folder, text: str, path: str = PATH) -> None:
    (folder.root / path).parent.mkdir(exist_ok=True)
    with (folder.root / path).open("a") as file:
        file.write(text)


async def state(folder: Folder, path: str = PATH) -> FileState:
    logged = await folder.log.get(FileKey(SCOPE, path))
    assert logged is not None
    return logged.state


class TestDelta:
    """A transcript is taken after 50 messages or 100,000 bytes more; by interval and when asked in any case."""

    @pytest.fixture
    async def reconciler(self, folder: Folder) -> Reconciler:
        reconciler = Reconciler(SCOPE, folder.root, folder.log, SETTINGS, RULES)
        append(folder, messages(3))
        assert await reconciler.reconcile(reload=True, live=False) == 1
        return reconciler

    async def told(self, reconciler: Reconciler) -> int:
        return await reconciler.reconcile(frozenset({PATH}), reload=False, live=True)

    async def test_fifty_messages(self, folder: Folder, reconciler: Reconciler) -> None:
        append(folder, messages(49))
        append(folder, '{"type":"toolCall"}\n' * 100 + '{"role":"user","content":"half')
        assert await self.told(reconciler) == 0
        append(folder, ' a message"}\n')
        assert await self.told(reconciler) == 1
        assert ((await state(folder)).content or b"").count(b"User:") == 53
        append(folder, messages(49))
        assert await self.told(reconciler) == 0

    async def test_a_hundred_thousand_bytes(self, folder: Folder, reconciler: Reconciler) -> None:
        append(folder, messages(1, "y" * 99_000))
        assert await self.told(reconciler) == 0
        append(folder, messages(1, "y" * 1_000))
        assert await self.told(reconciler) == 1

    async def test_everything_by_interval_and_when_asked(self, folder: Folder, reconciler: Reconciler) -> None:
        append(folder, messages(1, "y"))
        reconciler.forget()
        assert await reconciler.reconcile(reload=True, live=True) == 1
        assert ((await state(folder)).content or b"").endswith(b"User: y0\n")

    async def test_a_new_transcript_waits_likewise(self, folder: Folder, reconciler: Reconciler) -> None:
        append(folder, messages(49), "sessions/new.jsonl")
        assert await self.told(reconciler) == 0
        append(folder, messages(1), "sessions/new.jsonl")
        assert await self.told(reconciler) == 1

    async def test_what_is_no_growth_is_taken_at_once(self, folder: Folder, reconciler: Reconciler) -> None:
        file = folder.root / PATH
        file.write_text(messages(1, "cut"))
        assert await self.told(reconciler) == 1
        other = folder.write("sessions/.new", messages(4, "replaced"))
        other.replace(file)
        assert await self.told(reconciler) == 1
        file.rename(folder.root / "sessions/renamed.jsonl")
        assert await self.told(reconciler) == 2
        assert await folder.live() == {"sessions/renamed.jsonl": "".join(f"User: replaced{n}\n" for n in range(4))}
        (folder.root / "sessions/renamed.jsonl").unlink()
        assert await self.told(reconciler) == 1


async def test_a_transcript_s_state(folder: Folder) -> None:
    reconciler = Reconciler(SCOPE, folder.root, folder.log, SETTINGS, RULES)
    append(folder, messages(1))
    await reconciler.reconcile(reload=True, live=False)
    seen = await state(folder)
    assert (seen.source, seen.private, seen.content) == (Source.SESSIONS, True, b"User: x0\n")
    # What is no message changes nothing.
    append(folder, '{"type":"toolCall"}\n')
    reconciler.forget()
    assert await reconciler.reconcile(reload=True, live=False) == 0


async def test_limits_of_a_transcript(folder: Folder) -> None:
    rules = replace(RULES, max_bytes=100, max_transcript_bytes=1000)
    append(folder, '{"type":"toolResult"}\n' * 20 + messages(2))
    append(folder, messages(20), "sessions/words.jsonl")
    append(folder, "x" * 1001, "sessions/disk.jsonl")
    await Reconciler(SCOPE, folder.root, folder.log, SETTINGS, rules).reconcile(reload=True, live=False)
    states = await folder.states()
    assert states[PATH].endswith("User: x0\nUser: x1\n")
    assert (states["sessions/words.jsonl"], states["sessions/disk.jsonl"]) == ("TOO_LARGE", "TOO_LARGE")


@pytest.fixture
async def wiki(folder: Folder, tmp_path: Path) -> AsyncIterator[Path]:
    """A further folder that is watched and holds one file."""
    root = tmp_path / "wiki"
    root.mkdir()
    (root / "a.md").write_text("wiki\n")
    append(folder, messages(1))
    folder.write("own.md")
    rules = {SCOPE: replace(RULES, extras=(Extra("wiki", root, evergreen=False),))}
    service = WorkspaceService({SCOPE: folder.root}, folder.log, SETTINGS, rules)
    await service.start()
    yield root
    await service.close()


OWN = {"own.md": "text\n", PATH: "User: x0\n"}


async def test_a_further_folder_is_watched(folder: Folder, wiki: Path) -> None:
    await folder.shows(OWN | {"wiki/a.md": "wiki\n"})
    assert not (await state(folder, "wiki/a.md")).evergreen
    (wiki / "deep").mkdir()
    (wiki / "deep/b.md").write_text("new\n")
    (wiki / "a.md").write_text("edited\n")
    await folder.shows(OWN | {"wiki/a.md": "edited\n", "wiki/deep/b.md": "new\n"})
    append(folder, messages(50, "y"))
    more = "".join(f"User: y{n}\n" for n in range(50))
    await folder.shows(OWN | {"wiki/a.md": "edited\n", "wiki/deep/b.md": "new\n", PATH: f"User: x0\n{more}"})


async def test_a_further_folder_that_vanishes_sets_its_files_aside_until_it_is_back(
    folder: Folder, wiki: Path, tmp_path: Path
) -> None:
    wiki.rename(tmp_path / "away")
    await folder.shows(OWN | {"wiki/": "UNREADABLE", "wiki/a.md": "UNREADABLE"})
    wiki.mkdir()  # as where a volume is not mounted
    folder.write("b.md")
    await folder.shows(OWN | {"wiki/": "UNREADABLE", "wiki/a.md": "UNREADABLE", "b.md": "text\n"})
    wiki.rmdir()
    (tmp_path / "away").rename(wiki)
    await folder.shows(OWN | {"wiki/a.md": "wiki\n", "b.md": "text\n"})
    (wiki / "a.md").unlink()  # of a folder that was seen full this is meant
    await folder.shows(OWN | {"b.md": "text\n"})
    shutil.rmtree(wiki)
    await folder.shows(OWN | {"b.md": "text\n"})
