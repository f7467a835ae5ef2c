"""A full disk ends a command that indexes once; a server goes on trying, and says so."""

from __future__ import annotations

import asyncio
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from memoryd.errors import ResourceExhaustedError
from services.standalone.app import open_standalone
from services.standalone.index import index_all
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import WorkspaceSettings
from tests.support.eventually import eventually
from tests.support.fakes import FakeEmbedder

_Usage = namedtuple("_Usage", ["total", "used", "free"])  # noqa: PYI024  (as the standard library's)


async def test_it_ends_a_command_and_not_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("alpha\n")
    settings = StandaloneSettings(data_dir=tmp_path / "data", workspaces=(WorkspaceSettings(path=folder),))
    scope = settings.workspaces[0].scope
    free = 100 << 20  # enough to open the stores, and less than what writes leave free
    monkeypatch.setattr(shutil, "disk_usage", lambda path: _Usage(1 << 40, 0, free))
    async with open_standalone(settings, embedder=FakeEmbedder()) as standalone:
        with pytest.raises(ResourceExhaustedError, match="notes can't be indexed: less than 128 MiB are free") as full:
            await index_all(standalone, scope, lambda *_: None)
        assert full.value.reason == "DISK_FULL"
        serving = asyncio.create_task(index_all(standalone, scope, lambda *_: None, patient=True))

        async def told() -> tuple[str, bool]:
            failure = (await standalone.indexer.status(scope)).failure
            return (failure.reason, failure.ongoing) if failure else ("", False)

        await eventually(told, ("DISK_FULL", True))
        assert not serving.done()
        free = 1 << 40
        assert (await serving).files == 1
        await eventually(told, ("DISK_FULL", False))
