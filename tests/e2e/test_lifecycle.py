"""Starting, stopping and being killed."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.errors import UnavailableError
from memoryd.ports import ChunkStore
from tests.e2e.conftest import ROD
from tests.e2e.deployment import Shape
from tests.e2e.processes import command, serve
from tests.e2e.shapes import standalone

NOTE = "# Notes of day {n}\n\nOn day {n} the ferry Halcyon-{n} left at {n}:15 with {n} crates of apples.\n"


def write_notes(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for n in range(count):
        (folder / f"note-{n:03}.md").write_text(NOTE.format(n=n))


async def test_a_restart_embeds_nothing_again(shape: Shape, tmp_path: Path, folder: Path) -> None:
    write_notes(folder, 5)
    async with shape(tmp_path / "data", {ROD: folder}) as first:
        await first.settled()
        before = await first.client.status()
        found = await first.found("the ferry Halcyon-3")
    async with shape(tmp_path / "data", {ROD: folder}) as second:
        # Nothing is pending at any time after the start: what is found now was not indexed now.
        now = (await second.client.status()).workspaces
        assert [replace(one, checked_at=0.0, reconciled_at=0.0) for one in now] == [
            replace(one, checked_at=0.0, reconciled_at=0.0) for one in before.workspaces
        ]
        assert await second.found("the ferry Halcyon-3") == found


async def test_touching_a_file_without_a_change_costs_nothing(shape: Shape, tmp_path: Path, folder: Path) -> None:
    """Nothing is put into the file log, so nothing is read, embedded or written: no outline gets a new revision."""
    write_notes(folder, 5)
    async with shape(tmp_path / "data", {ROD: folder}) as running:
        await running.settled()
        before = (await running.search("ferry")).revision
        for file in folder.iterdir():
            os.utime(file)
        (folder / "note-000.md").write_bytes((folder / "note-000.md").read_bytes())
        await running.synced()
        assert not (await running.client.status()).workspaces[0].pending
        assert (await running.search("ferry")).revision == before


async def test_sigterm_under_load_answers_what_is_in_flight_and_exits_0(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "notes"
    write_notes(folder, 20)
    async with serve(data, folder) as served:
        await served.client.search("ferry")
        calls = [asyncio.create_task(served.client.search(f"crates of apples {n}")) for n in range(20)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert await served.end(signal.SIGTERM) == 0
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        # Those that the server had taken are answered; one that came too late is told that nobody is there.
        assert all(isinstance(outcome, UnavailableError) or not isinstance(outcome, Exception) for outcome in outcomes)
        assert sum(not isinstance(outcome, Exception) for outcome in outcomes) >= 1


async def test_sigkill_in_the_middle_of_indexing_loses_and_doubles_nothing(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "notes"
    write_notes(folder, 120)
    async with serve(data, folder) as served:
        while not 0 < (await served.client.status()).workspaces[0].chunks < 120:
            await asyncio.sleep(0.01)
        await served.end(signal.SIGKILL)
    (folder / "note-000.md").unlink()
    (folder / "note-001.md").write_text(NOTE.format(n=999))
    async with standalone(data, {ROD: folder}) as after:
        await after.settled()
        scope = ROD
        status = await after.insides.indexer.status(scope)
        view = await after.insides.parts.manifest.view(scope)
        listed = {chunk for outline in view.outlines.values() for chunk in outline.by_id}
        assert (status.files, status.pending) == (119, 0)
        assert len(listed) == status.chunks == 119
        for store in (after.insides.parts.vectors, after.insides.parts.texts):
            assert listed <= await stored(store)
        paths = await after.found("On day 999 the ferry Halcyon-999", min_score=0.0, max_results=50)
        assert paths[0] == "note-001.md"
        assert "note-000.md" not in paths
        assert len(paths) == len(set(paths))


async def stored(store: ChunkStore) -> set[str]:
    return {ref.id async for page in store.scan(ROD) for ref in page}


async def test_a_second_process_is_refused_the_data_directory(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "notes"
    write_notes(folder, 1)
    async with serve(data, folder) as served:
        second = await command(data, "serve", folder, "--address", "127.0.0.1:0")
        assert second.code == 1
        assert f"in use by process {served.process.pid}" in second.err
        assert "Traceback" not in second.err
        index = await command(data, "index", folder)
        assert (index.code, "in use" in index.err) == (1, True)


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    write_notes(folder, 1)
    async with serve(tmp_path / "data", folder) as served:
        second = await command(tmp_path / "other", "serve", folder, "--address", served.address)
        assert second.code == 1
        assert f"can't listen on {served.address}" in second.err
        assert "Traceback" not in second.err


def damage(data: Path, name: str) -> Path:
    """Overwrite a part of a data directory, in the middle or as a whole."""
    (target,) = [*data.glob(name), *data.glob(f"generations/*/{name}")]
    files = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    for path in files:
        path.write_bytes(b"\0garbage\xff" * 500)
    return target


@pytest.mark.parametrize("name", ["filelog.db", "manifest.db", "vectors", "text"])
async def test_what_can_be_built_again_is_set_aside_when_damaged(tmp_path: Path, name: str) -> None:
    data, folder = tmp_path / "data", tmp_path / "notes"
    write_notes(folder, 2)
    assert (await command(data, "index", folder)).code == 0
    target = damage(data, name)
    ended = await command(data, "index", folder)
    assert (ended.code, ended.out) == (0, "notes: 2 files, 2 chunks\n")
    assert str(target) in ended.err
    assert list(target.parent.glob(f"{name}.damaged-*"))


@pytest.mark.parametrize("name", ["format.json", "keys.db"])
async def test_damage_to_what_cant_be_built_again_is_named(tmp_path: Path, name: str) -> None:
    data, folder = tmp_path / "data", tmp_path / "notes"
    write_notes(folder, 2)
    assert (await command(data, "index", folder)).code == 0
    target = damage(data, name)
    ended = await command(data, "index", folder)
    assert ended.code == 1
    assert str(target.name) in ended.err or str(target) in ended.err
    assert "Traceback" not in ended.err
