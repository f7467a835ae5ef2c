"""What errors of a broken index advise: delete the generation's folder, and it is indexed again."""

from __future__ import annotations

import shutil
from pathlib import Path

from services.standalone.app import open_standalone
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import WorkspaceSettings
from tests.support.eventually import eventually
from tests.support.fakes import FakeEmbedder


async def indexed(settings: StandaloneSettings) -> None:
    """Start, and wait until both files are searchable."""
    scope = settings.workspaces[0].scope

    async with open_standalone(settings, embedder=FakeEmbedder()) as standalone:

        async def look() -> tuple[int, int]:
            status = await standalone.indexer.status(scope)
            return status.files, status.pending

        await eventually(look, (2, 0))


async def test_a_deleted_generation_is_indexed_again(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# {name}\n")
    settings = StandaloneSettings(data_dir=tmp_path / "data", workspaces=(WorkspaceSettings(path=folder),))
    await indexed(settings)
    (generation,) = (tmp_path / "data" / "generations").iterdir()
    shutil.rmtree(generation)
    await indexed(settings)
