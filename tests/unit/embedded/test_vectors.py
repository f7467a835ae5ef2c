from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from memoryd.adapters.embedded import shard
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from memoryd.errors import DataError, ResourceExhaustedError, UnavailableError
from tests.contract.registry import DIMENSIONS
from tests.contract.vector_chunks import embedded, found, ids, scanned

DAMAGES: dict[str, Callable[[Path], object]] = {
    "config-cut": lambda root: (root / "edge_config.json").write_text('{"vectors": '),
    "config-foreign": lambda root: (root / "edge_config.json").write_text("[]"),
    "config-gone": lambda root: (root / "edge_config.json").unlink(),
    "segment-cut": lambda root: next(root.glob("segments/*/segment.json")).write_text("{"),
    "segments-gone": lambda root: next(root.glob("segments/*")).rename(root / "elsewhere"),
    "log-gone": lambda root: (root / "wal").rename(root / "elsewhere"),
    "flags": lambda root: [path.write_bytes(b"\xa5" * 100) for path in root.rglob("status.dat")],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "generation" / "vectors"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[EdgeVectorStore]:
    store = await EdgeVectorStore.open(root, DIMENSIONS)
    yield store
    await store.close()


async def made(root: Path) -> None:
    store = await EdgeVectorStore.open(root, DIMENSIONS)
    await store.upsert([embedded(n) for n in range(20)])
    await store.close()


class TestOpening:
    async def test_vectors_of_another_length_are_refused(self, root: Path) -> None:
        await made(root)
        with pytest.raises(DataError, match=f"{root} holds vectors of {DIMENSIONS} numbers.*16.*delete {root.parent}"):
            await EdgeVectorStore.open(root, 16)

    @pytest.mark.parametrize("damage", DAMAGES)
    async def test_a_damaged_folder_is_named_with_what_to_do(self, root: Path, damage: str) -> None:
        await made(root)
        DAMAGES[damage](root)
        with pytest.raises(DataError, match=f"{root} is (damaged|half there).*delete {root.parent} "):
            await EdgeVectorStore.open(root, DIMENSIONS)

    async def test_what_a_crash_in_the_first_start_left_is_no_hindrance(self, root: Path) -> None:
        left = root.with_name("vectors.new")
        (left / "segments").mkdir(parents=True)
        (left / "edge_config.json").write_text("{")
        await made(root)
        assert not left.exists()
        assert root.stat().st_mode & 0o777 == 0o700

    async def test_a_full_disk_is_not_taken_for_damage(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shard, "_TO_CREATE", 1 << 60)
        with pytest.raises(ResourceExhaustedError, match=f"free on the disk of {root}") as caught:
            await made(root)
        assert caught.value.reason == "DISK_FULL"
        monkeypatch.undo()
        await made(root)
        monkeypatch.setattr(shard, "_TO_OPEN", 1 << 60)
        with pytest.raises(ResourceExhaustedError, match="nothing is lost"):
            await EdgeVectorStore.open(root, DIMENSIONS)


class TestTrouble:
    async def test_a_disk_that_is_almost_full_is_not_written_to(self, root: Path) -> None:
        await made(root)
        store = await EdgeVectorStore.open(root, DIMENSIONS, reserve=1 << 60)
        try:
            with pytest.raises(ResourceExhaustedError, match=str(root)) as caught:
                await store.upsert([embedded(99)])
            assert caught.value.reason == "DISK_FULL"
            assert len(await found(store)) == 20
        finally:
            await store.close()

    async def test_after_closing_everything_says_so(self, root: Path) -> None:
        store = await EdgeVectorStore.open(root, DIMENSIONS)
        waiting = asyncio.create_task(store.upsert([embedded(n) for n in range(500)]))
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        await waiting
        for call in (store.upsert([embedded(0)]), found(store), scanned(store), store.embeddings("acme", ["x"])):
            with pytest.raises(UnavailableError, match="closed"):
                await call
        store = await EdgeVectorStore.open(root, DIMENSIONS)
        assert len(await scanned(store)) == 500
        await store.close()

    async def test_an_upsert_that_was_given_up_before_its_turn_is_not_written(self, store: EdgeVectorStore) -> None:
        first = asyncio.create_task(store.upsert([embedded(n) for n in range(200)]))
        await asyncio.sleep(0)
        given_up = asyncio.create_task(store.upsert([embedded(999)]))
        last = asyncio.create_task(store.upsert([embedded(1_000)]))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(first, last)
        assert len(await found(store)) == 201

    async def test_what_was_answered_survives_a_kill(self, root: Path) -> None:
        command = [sys.executable, "-m", "tests.unit.embedded.test_vectors", str(root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        acknowledged = set(done.stdout.split())
        assert done.returncode == -signal.SIGKILL
        assert len(acknowledged) >= 300
        store = await EdgeVectorStore.open(root, DIMENSIONS)
        stored = {ref.id for ref in await scanned(store)}
        searched = {chunk.id for chunk in await found(store)}
        await store.close()
        assert acknowledged <= stored
        assert searched == stored


async def main(root: Path) -> None:
    store = await EdgeVectorStore.open(root, DIMENSIONS)
    acknowledged = 0

    async def work(worker: int) -> None:
        nonlocal acknowledged
        for n in range(100):
            chunks = [embedded(10_000 * worker + 10 * n + k, f"{n}.md") for k in range(10)]
            await store.upsert(chunks)
            sys.stdout.write("\n".join(ids(chunks)) + "\n")
            sys.stdout.flush()
            acknowledged += len(chunks)
            if acknowledged >= 300:
                os.kill(os.getpid(), signal.SIGKILL)

    await asyncio.gather(*(work(worker) for worker in range(3)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
