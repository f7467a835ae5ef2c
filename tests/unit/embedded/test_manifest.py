from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.domain.files import FileKey, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline

SCOPE = Scope("acme", "main")


@pytest.fixture
async def manifest(tmp_path: Path) -> AsyncIterator[SqliteManifest]:
    manifest = await SqliteManifest.open(tmp_path / "manifest.db")
    yield manifest
    await manifest.close()


def outline(path: str, revision: Revision | None = None) -> Outline:
    revision = revision or Revision(1, 1)
    return Outline(FileKey(SCOPE, path), revision, "h", (Listed("id", "identity", 0, 1, 2),))


async def test_a_view_is_given_again_while_nothing_changes(manifest: SqliteManifest) -> None:
    await manifest.commit(outline("a.md"))
    view = await manifest.view(SCOPE)
    await manifest.commit(replace(outline("a.md"), key=FileKey(Scope("acme", "other"), "a.md")))
    assert await manifest.view(SCOPE) is view


async def test_a_view_reads_only_what_changed_since_the_last(manifest: SqliteManifest) -> None:
    for name in ("a.md", "b.md", "c.md"):
        await manifest.commit(outline(name))
    before = await manifest.view(SCOPE)
    await manifest.commit(replace(before.outlines["b.md"], revision=Revision(1, 9)))
    after = await manifest.view(SCOPE)
    assert [name for name in after.outlines if after.outlines[name] is not before.outlines[name]] == ["b.md"]


async def test_it_knows_its_newest_revision_for_the_file_log(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    manifest = await SqliteManifest.open(path)
    assert manifest.newest_at_open is None
    for name, revision in [("a.md", Revision(2, 7)), ("b.md", Revision(1, 99)), ("c.md", Revision(2, 10))]:
        await manifest.commit(outline(name, revision))
    await manifest.close()
    manifest = await SqliteManifest.open(path)
    await manifest.close()
    assert manifest.newest_at_open == Revision(2, 10)
