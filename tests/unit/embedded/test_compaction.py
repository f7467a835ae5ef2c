from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from memoryd.adapters.embedded import compaction
from memoryd.adapters.embedded.datadir import bytes_on_disk
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from memoryd.ports import EmbeddedChunk, Filter
from tests.contract.vector_chunks import SCOPE, embedded, ids, scanned
from tests.support.eventually import eventually

DIMENSIONS = 384
COUNT = 14_000  # vectors of 21.5 MB, more than `indexing_threshold`
REMOVED = 4_000
VECTORS = np.random.default_rng(5).standard_normal((COUNT, DIMENSIONS)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
HERE = Filter(SCOPE)


@cache  # not made by whoever only collects the tests
def chunks() -> list[EmbeddedChunk]:
    return [replace(embedded(n), vector=each) for n, each in enumerate(VECTORS)]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large") / "vectors"

    async def make() -> None:
        store = await EdgeVectorStore.open(root, DIMENSIONS)
        await store.upsert(chunks())
        await store.delete(SCOPE, ids(chunks()[:REMOVED]))
        await store.close()

    asyncio.run(make())
    return root


@pytest.fixture
def root(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compaction, "_WORTH_POINTS", COUNT - REMOVED)
    return Path(shutil.copytree(large, tmp_path / "vectors"))


def exact(query: np.ndarray) -> list[str]:
    best = np.argsort(-(VECTORS[REMOVED:] @ query))[:60]
    return ids([chunks()[REMOVED + place] for place in best])


def as_bytes(store: EdgeVectorStore) -> int:
    return int(store._shard.info().indexed_vectors_count)  # noqa: SLF001  (a search does not tell)


def running(root: Path) -> list[int]:
    """Find the processes that compact a shard."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            arguments = (place / "cmdline").read_bytes().split(b"\0")
            if b"memoryd.adapters.embedded.compaction" in arguments and bytes(root) in arguments:
                found.append(int(place.name))
    return found


async def nearest(store: EdgeVectorStore, query: np.ndarray) -> list[str]:
    return [name for name, _ in (await store.nearest(query, HERE, 60, [])).hits]


async def test_a_large_shard_is_compacted_once_and_finds_the_same(root: Path) -> None:
    before = bytes_on_disk(root)
    with capture_logs() as logs:
        store = await EdgeVectorStore.open(root, DIMENSIONS)
    assert [entry["event"] for entry in logs] == ["compacting the vectors", "vectors compacted"]
    assert as_bytes(store) == COUNT - REMOVED
    assert bytes_on_disk(root) < before
    queries = VECTORS[::700] + np.random.default_rng(6).standard_normal((20, DIMENSIONS)).astype(np.float32) * 0.02
    found = [await nearest(store, query) for query in queries]
    shared = [len(set(names) & set(exact(query))) / 60 for names, query in zip(found, queries, strict=True)]
    assert np.mean(shared) > 0.99
    assert [names[0] for names in found] == [exact(query)[0] for query in queries]

    new = replace(embedded(COUNT), vector=VECTORS[0])
    await store.upsert([new])
    await store.delete(SCOPE, [chunks()[-1].chunk.id])
    assert (await nearest(store, VECTORS[0]))[0] == new.chunk.id
    assert chunks()[-1].chunk.id not in await nearest(store, VECTORS[-1])
    await store.close()
    with capture_logs() as logs:
        store = await EdgeVectorStore.open(root, DIMENSIONS)
    assert logs == []
    assert len(await scanned(store)) == COUNT - REMOVED
    await store.close()


async def test_cosines_are_those_of_the_full_vectors(root: Path) -> None:
    store = await EdgeVectorStore.open(root, DIMENSIONS)
    found = await store.nearest(VECTORS[-1], HERE, 60, ids(chunks()[-100:-90]))
    await store.close()
    by_id = dict(zip(ids(chunks()), VECTORS @ VECTORS[-1], strict=True))
    for name, cosine in [*found.hits, *found.cosines.items()]:
        assert cosine == pytest.approx(by_id[name], abs=1e-5)


async def test_a_compaction_that_is_killed_loses_nothing(root: Path) -> None:
    with capture_logs() as logs:
        opening = asyncio.create_task(EdgeVectorStore.open(root, DIMENSIONS))
        await eventually(lambda: asyncio.to_thread((root / "temp_segments").exists), wanted=True)
        os.kill(running(root)[0], signal.SIGKILL)
        store = await opening
    (failed,) = (entry for entry in logs if entry["event"] == "compaction_failed")
    assert (failed["exit_status"], failed["log_level"]) == (-signal.SIGKILL, "warning")
    assert len(await scanned(store)) == COUNT - REMOVED
    assert await nearest(store, VECTORS[-1]) == exact(VECTORS[-1])
    await store.close()
    store = await EdgeVectorStore.open(root, DIMENSIONS)
    assert as_bytes(store) == COUNT - REMOVED
    assert not any((root / "temp_segments").iterdir())
    await store.close()


async def test_a_compaction_ends_with_the_process_that_began_it(root: Path) -> None:
    code = (
        "import asyncio, pathlib, sys; from memoryd.adapters.embedded.compaction import compact;"
        f" asyncio.run(compact(pathlib.Path(sys.argv[1]), {DIMENSIONS}))"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(root))
    await eventually(lambda: asyncio.to_thread(lambda: len(running(root))), 1)
    parent.kill()
    await parent.wait()
    await eventually(lambda: asyncio.to_thread(lambda: len(running(root))), 0, within=5.0)
    store = await EdgeVectorStore.open(root, DIMENSIONS)
    assert len(await scanned(store)) == COUNT - REMOVED
    await store.close()


async def test_without_room_for_a_second_copy_the_shard_stays_as_it_is(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_COPIES", 1e9)
    with capture_logs() as logs:
        store = await EdgeVectorStore.open(root, DIMENSIONS)
    (entry,) = logs
    assert (entry["event"], entry["log_level"]) == ("compaction_left_out", "warning")
    assert await nearest(store, VECTORS[-1]) == exact(VECTORS[-1])
    await store.close()
