"""The Tantivy text store when its engine, its disk or its caller fails."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tantivy import Index, SchemaBuilder

from memoryd.adapters.embedded import text, text_commits, text_index
from memoryd.adapters.embedded.text import TantivyTextStore
from memoryd.adapters.embedded.text_index import Change, TextIndex
from memoryd.domain.chunks import Chunk
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.names import Scope
from memoryd.errors import (
    DataError,
    DeadlineExceededError,
    ResourceExhaustedError,
    UnavailableError,
)
from memoryd.ports import Filter, QueryTerm
from tests.support.eventually import eventually
from tests.support.hits import text_hits

SCOPE = Scope("acme", "main")


def chunk(name: str, terms: str = "word") -> Chunk:
    return Chunk(
        id=name,
        key=FileKey(SCOPE, f"{name}.md"),
        text=name,
        breadcrumb="",
        source=Source.MEMORY,
        private=False,
        date="",
        tags=(),
        birth=Revision(1, 1),
        text_hash=name,
        terms=terms,
        heading_terms="",
    )


async def found(store: TantivyTextStore) -> list[str]:
    return sorted(hit.chunk.id for hit in await text_hits(store, [QueryTerm("word")], Filter(SCOPE), 100))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[TantivyTextStore]:
    store = await TantivyTextStore.open(tmp_path)
    yield store
    await store.close()


@contextmanager
def files_of_at_most(limit: int) -> Iterator[None]:
    """Make every write beyond `limit` bytes of a file fail, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_after_a_commit_addresses_mean_other_documents(store: TantivyTextStore) -> None:
    names = [f"{number:02}" for number in range(40)]
    await store.upsert([chunk(name) for name in names])
    assert await found(store) == names
    for start in range(0, 30, 10):  # small segments, merged meanwhile
        await store.delete(SCOPE, names[start : start + 10])
        await store.upsert([chunk(f"{name}x") for name in names[start : start + 10]])
        expected = [f"{name}x" for name in names[: start + 10]] + names[start + 10 :]
        assert await found(store) == sorted(expected)
        assert set(await store.chunks(SCOPE, expected)) == set(expected)


async def test_more_names_than_are_kept_are_read_again(
    store: TantivyTextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_index, "_NAMES", 3)
    names = [f"{number:02}" for number in range(10)]
    await store.upsert([chunk(name) for name in names])
    for _ in range(2):
        assert await found(store) == names


class TestDisk:
    async def test_after_a_failed_write_the_index_is_as_before_and_takes_the_next(
        self, store: TantivyTextStore
    ) -> None:
        await store.upsert([chunk("before")])
        with files_of_at_most(4_000):
            for attempt in range(2):
                with pytest.raises(UnavailableError, match="check the disk"):
                    await store.upsert([chunk(f"{attempt}-{n}", f"word w{n * 7919}") for n in range(2_000)])
        assert await found(store) == ["before"]
        await store.upsert([chunk("after")])
        assert await found(store) == ["after", "before"]

    async def test_a_disk_that_is_nearly_full_refuses_writes_and_serves_searches(self, tmp_path: Path) -> None:
        first = await TantivyTextStore.open(tmp_path)
        await first.upsert([chunk("kept")])
        await first.close()
        store = await TantivyTextStore.open(tmp_path, reserve=1 << 60)
        with pytest.raises(ResourceExhaustedError, match="free some") as caught:
            await store.upsert([chunk("more")])
        assert caught.value.reason == "DISK_FULL"
        assert await found(store) == ["kept"]
        await store.close()

    async def test_a_folder_that_can_not_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        store = await TantivyTextStore.open(tmp_path / "file")
        with pytest.raises(UnavailableError, match="check the disk"):
            await store.upsert([chunk("a")])
        assert await found(store) == []
        await store.close()


class TestDamage:
    @pytest.mark.parametrize("name", ["meta.json", "*.store", "*.idx", "*.term"])
    async def test_a_damaged_file_is_named_with_what_to_do(self, tmp_path: Path, name: str) -> None:
        first = await TantivyTextStore.open(tmp_path)
        await first.upsert([chunk("a")])
        await first.close()
        for file in (tmp_path / "acme").glob(name):
            file.write_text("{")
        store = await TantivyTextStore.open(tmp_path)
        with pytest.raises(DataError, match="move the folder's generation away"):
            await found(store)
        with pytest.raises(DataError, match="move the folder's generation away"):
            await store.upsert([chunk("b")])
        await store.close()

    async def test_an_index_of_other_fields(self, tmp_path: Path) -> None:
        builder = SchemaBuilder()
        builder.add_text_field("body")
        (tmp_path / "acme").mkdir()
        Index(builder.build(), path=str(tmp_path / "acme"))
        store = await TantivyTextStore.open(tmp_path)
        with pytest.raises(DataError, match="another version"):
            await found(store)
        await store.close()


class TestLock:
    async def test_a_second_writer_is_told_so_and_can_read(self, store: TantivyTextStore, tmp_path: Path) -> None:
        await store.upsert([chunk("a")])
        other = await TantivyTextStore.open(tmp_path)
        with pytest.raises(UnavailableError, match="another process"):
            await other.upsert([chunk("b")])
        assert await found(other) == ["a"]
        await store.close()
        await other.upsert([chunk("b")])
        assert await found(other) == ["a", "b"]
        await other.close()

    async def test_an_idle_writer_gives_the_lock_back(
        self, store: TantivyTextStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text, "_IDLE_SECONDS", 0.0)
        await store.upsert([chunk("a")])
        other = await TantivyTextStore.open(tmp_path)

        async def written() -> bool:
            try:
                await other.upsert([chunk("b")])
            except UnavailableError:
                return False
            return True

        await eventually(written, wanted=True)
        await other.close()
        await store.upsert([chunk("c")])
        assert await found(store) == ["a", "b", "c"]


class TestGroups:
    async def test_writes_that_come_together_share_a_commit(
        self, store: TantivyTextStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        groups: list[int] = []
        write = TextIndex.write

        def counted(index: TextIndex, changes: list[Change]) -> None:
            groups.append(len(changes))
            write(index, changes)

        monkeypatch.setattr(TextIndex, "write", counted)
        await asyncio.gather(*(store.upsert([chunk(f"{n:02}")]) for n in range(40)))
        assert sum(groups) == 40
        assert len(groups) < 20
        assert len(await found(store)) == 40

    async def test_a_caller_that_goes_away_takes_nobody_along(self, store: TantivyTextStore) -> None:
        calls = [asyncio.create_task(store.upsert([chunk(f"{n}")])) for n in range(8)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [True, False] * 4
        assert set(await found(store)) >= {"1", "3", "5", "7"}

    async def test_a_chunk_that_can_not_be_written_fails_its_own_caller_alone(self, store: TantivyTextStore) -> None:
        bad, good = await asyncio.gather(
            store.upsert([chunk("bad", terms="\ud800")]), store.upsert([chunk("good")]), return_exceptions=True
        )
        assert isinstance(bad, Exception)
        assert good is None
        assert await found(store) == ["good"]

    async def test_too_many_waiting_writes_are_refused(
        self, store: TantivyTextStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text_commits, "_MAX_WAITING", 0)
        with pytest.raises(ResourceExhaustedError, match="try again later"):
            await store.upsert([chunk("a")])

    async def test_a_commit_that_takes_too_long(self, store: TantivyTextStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_commits, "_COMMIT_SECONDS", 0.0)
        with pytest.raises(DeadlineExceededError, match="check the disk"):
            await store.upsert([chunk("a")])


class TestClose:
    async def test_writes_that_wait_are_finished_first(self, tmp_path: Path) -> None:
        store = await TantivyTextStore.open(tmp_path)
        await store.upsert([chunk("0")])
        writes = [asyncio.create_task(store.delete(SCOPE, ["0"])), asyncio.create_task(store.delete(SCOPE, ["1"]))]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*writes)
        store = await TantivyTextStore.open(tmp_path)
        assert await found(store) == []
        await store.close()

    async def test_a_closed_store_says_so(self, store: TantivyTextStore) -> None:
        await store.close()
        await store.close()
        with pytest.raises(UnavailableError, match="closed"):
            await found(store)
        with pytest.raises(UnavailableError, match="closed"):
            await store.upsert([chunk("a")])
        with pytest.raises(UnavailableError, match="closed"):
            await store.delete(SCOPE, ["a"])
