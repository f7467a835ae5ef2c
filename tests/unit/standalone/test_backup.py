"""A copy of a data directory that is being used, and the directory that is made of it."""

from __future__ import annotations

import io
import secrets
import tarfile
from pathlib import Path

import pytest

from memoryd.adapters.embedded.backup import back_up, restore
from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.keys import SqliteKeyStore
from memoryd.domain.files import FileKey, FileState
from memoryd.domain.names import Scope
from memoryd.errors import ConfigError, DataError
from memoryd.ports import Filter, QueryTerm
from services.standalone.app import open_standalone
from services.standalone.settings import StandaloneSettings
from tests.support.eventually import eventually
from tests.support.fakes import FakeEmbedder
from tests.support.hits import text_hits

SCOPE = Scope("local", "notes")


def state(path: str, text: str) -> FileState:
    return FileState(FileKey(SCOPE, path), text, text.encode(), 1.7e9)


@pytest.fixture
async def copied(tmp_path: Path) -> Path:
    """Copy a directory while it is open and goes on being written to."""
    data = DataDirectory.open(tmp_path / "data")
    log, keys = await SqliteFileLog.open(data.filelog), await SqliteKeyStore.open(data.keys)
    await log.put(state("a.md", "alpha one"), expected=None, live=True)
    await keys.create("local", frozenset({"notes"}))
    back_up(data.root, tmp_path / "copy")
    await log.put(state("later.md", "after the copy"), expected=None, live=True)
    for part in (log, keys):
        await part.close()
    data.close()
    return tmp_path / "copy"


async def test_what_it_held_is_searchable_without_its_folder(copied: Path, tmp_path: Path) -> None:
    restore(copied, tmp_path / "restored")
    settings = StandaloneSettings(data_dir=tmp_path / "restored")
    async with open_standalone(settings, embedder=FakeEmbedder()) as standalone:

        async def found() -> list[str]:
            hits = await text_hits(standalone.parts.texts, [QueryTerm("alpha")], Filter(SCOPE), 10)
            return [hit.chunk.text for hit in hits]

        await eventually(found, ["alpha one"])
        assert await standalone.log.get(FileKey(SCOPE, "later.md")) is None


async def test_no_revision_is_given_twice(copied: Path, tmp_path: Path) -> None:
    original = await SqliteFileLog.open(tmp_path / "data" / "filelog.db")
    given = [file.revision async for file in original.scan(SCOPE)]
    await original.close()
    restore(copied, tmp_path / "restored")
    log = await SqliteFileLog.open(tmp_path / "restored" / "filelog.db")
    (kept,) = [file.revision async for file in log.scan(SCOPE)]
    revision = await log.put(state("new.md", "new"), expected=None, live=False)
    await log.close()
    assert max(given) < kept < revision


async def test_keys_are_in_it(copied: Path, tmp_path: Path) -> None:
    restore(copied, tmp_path / "restored")
    keys = await SqliteKeyStore.open(tmp_path / "restored" / "keys.db")
    key = await keys.create("local", frozenset({"notes"}))
    assert await keys.principal(key) is not None
    await keys.close()
    for path in (copied, tmp_path / "restored" / "filelog.db", tmp_path / "restored" / "keys.db"):
        assert path.stat().st_mode & 0o077 == 0


async def test_what_was_deleted_is_in_no_copy(tmp_path: Path) -> None:
    data = DataDirectory.open(tmp_path / "data")
    log = await SqliteFileLog.open(data.filelog)
    secret = secrets.token_bytes(20_000)
    key = FileKey(SCOPE, "a.md")
    revision = await log.put(FileState(key, "h", secret, 0.0), expected=None, live=True)
    back_up(data.root, tmp_path / "before")
    await log.put(FileState.deletion(key, 0.0), expected=revision, live=True)
    back_up(data.root, tmp_path / "after")
    await log.close()
    data.close()
    pieces = [secret[start : start + 16] for start in range(0, len(secret), 16)]
    before, after = (tmp_path / "before").read_bytes(), (tmp_path / "after").read_bytes()
    assert sum(piece in before for piece in pieces) > len(pieces) / 2  # else this would look at nothing
    assert not any(piece in after for piece in pieces)


async def test_nothing_is_overwritten(copied: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exists already"):
        back_up(tmp_path / "data", copied)
    with pytest.raises(ConfigError, match="is not empty"):
        restore(copied, tmp_path / "data")
    with pytest.raises(ConfigError, match="no data directory"):
        back_up(tmp_path / "nothing", tmp_path / "other")


@pytest.mark.parametrize("damage", ["cut short", "changed", "something else", "another member"])
async def test_a_damaged_copy_leaves_nothing_behind(copied: Path, tmp_path: Path, damage: str) -> None:
    content = copied.read_bytes()
    if damage == "cut short":
        copied.write_bytes(content[: len(content) // 3])
    elif damage == "changed":
        middle = content.index(b"SQLite format 3") + 200
        copied.write_bytes(content[:middle] + b"x" + content[middle + 1 :])
    elif damage == "something else":
        copied.write_bytes(b"no copy")
    else:
        with tarfile.open(copied, "w") as archive:
            archive.addfile(tarfile.TarInfo("../outside"), io.BytesIO(b""))
    with pytest.raises(DataError, match="damaged"):
        restore(copied, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
    assert not list(tmp_path.glob(".memoryd-*"))
    assert not (tmp_path.parent / "outside").exists()
