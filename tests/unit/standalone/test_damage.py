"""What is damaged in a data directory, and can be built again, is set aside at the start and filled from the log."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryd.domain.names import Scope
from memoryd.domain.repairs import Checkup
from memoryd.errors import DataError
from memoryd.ports import Filter, QueryTerm
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import WorkspaceSettings
from tests.support.eventually import eventually
from tests.support.fakes import FakeEmbedder, vector_of
from tests.support.hits import text_hits, vector_hits

SCOPE = Scope("local", "notes")
PATHS = ["a.md", "b.md"]


@pytest.fixture
def settings(tmp_path: Path) -> StandaloneSettings:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in PATHS:
        (folder / name).write_text(f"# {name}\n\nalpha {name}\n")
    return StandaloneSettings(data_dir=tmp_path / "data", workspaces=(WorkspaceSettings(path=folder),))


@asynccontextmanager
async def running(settings: StandaloneSettings) -> AsyncIterator[Standalone]:
    """Start, and wait until both files are in both indexes."""
    async with open_standalone(settings, embedder=FakeEmbedder()) as standalone:

        async def found() -> list[list[str]]:
            await standalone.indexer.check(SCOPE, mend=True, timeout=10.0)
            parts = standalone.parts
            outlines = (await parts.manifest.view(SCOPE)).outlines
            by_meaning = await vector_hits(parts.vectors, vector_of("alpha"), Filter(SCOPE), 10)
            by_words = await text_hits(parts.texts, [QueryTerm("alpha")], Filter(SCOPE), 10)
            listed = {name for outline in outlines.values() for name in outline.by_id}
            return [
                sorted(hit.chunk.key.path for hit in hits if hit.chunk.id in listed) for hits in (by_meaning, by_words)
            ]

        await eventually(found, [PATHS, PATHS])
        yield standalone


def vectors_cut_short(generation: Path) -> None:
    (file,) = generation.rglob("vector_storage/vectors/chunk_0.mmap")
    os.truncate(file, 0)


def vectors_unreadable(generation: Path) -> None:
    (generation / "vectors" / "edge_config.json").write_text("{")


def texts_unreadable(generation: Path) -> None:
    (generation / "text" / "local" / "meta.json").write_text("{")


def texts_gone(generation: Path) -> None:
    shutil.rmtree(generation / "text")


def manifest_overwritten(generation: Path) -> None:
    (generation / "manifest.db").write_bytes(b"no database at all" * 1000)


def log_overwritten(generation: Path) -> None:
    (generation.parents[1] / "filelog.db").write_bytes(b"no database at all" * 1000)


@pytest.mark.parametrize(
    "damage",
    [
        vectors_cut_short,
        vectors_unreadable,
        texts_unreadable,
        texts_gone,
        manifest_overwritten,
        log_overwritten,
    ],
)
async def test_it_is_set_aside_and_built_again(settings: StandaloneSettings, damage: Callable[[Path], None]) -> None:
    async with running(settings):
        pass
    (generation,) = (settings.data_dir / "generations").iterdir()
    damage(generation)
    (settings.workspaces[0].path / PATHS[0]).touch()
    async with running(settings) as standalone:

        async def findings() -> tuple[int, int]:
            checkup: Checkup = await standalone.indexer.check(SCOPE, mend=False, timeout=10.0)
            return len(checkup.findings), checkup.pending

        await eventually(findings, (0, 0))
    if damage is not texts_gone:
        assert list(settings.data_dir.rglob("*.damaged-*"))


async def test_a_file_deleted_while_the_log_was_damaged_is_found_no_more(settings: StandaloneSettings) -> None:
    async with running(settings):
        pass
    (generation,) = (settings.data_dir / "generations").iterdir()
    log_overwritten(generation)
    (settings.workspaces[0].path / PATHS[1]).unlink()
    async with open_standalone(settings, embedder=FakeEmbedder()) as standalone:

        async def files() -> tuple[list[str], int]:
            await standalone.indexer.check(SCOPE, mend=True, timeout=10.0)
            outlines = (await standalone.parts.manifest.view(SCOPE)).outlines
            shown = sorted(path for path, outline in outlines.items() if not outline.deleted)
            return shown, (await standalone.indexer.status(SCOPE)).pending

        await eventually(files, ([PATHS[0]], 0))


async def test_keys_are_not_built_again(settings: StandaloneSettings) -> None:
    async with running(settings):
        pass
    (settings.data_dir / "keys.db").write_bytes(b"no database at all" * 1000)
    with pytest.raises(DataError, match="is damaged"):
        async with running(settings):
            pass
