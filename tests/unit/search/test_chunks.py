"""Chunks that the search keeps: read once, gone when they are no longer listed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from memoryd.domain.chunks import Chunk
from memoryd.domain.names import Scope
from memoryd.domain.queries import Mode
from memoryd.ports import Embeddings
from services.search import chunks as chunks_module
from services.search.settings import SearchSettings
from tests.support.fakes import FakeEmbedder, MemoryVectorStore
from tests.support.searching import SCOPE, World


class Store(MemoryVectorStore):
    """Counts what is read; `most` bounds what a search finds, and `delay` is how long it takes."""

    most = 100
    delay = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.compared = 0

    async def nearest(self, vector: Any, where: Any, limit: int, ids: Sequence[str]) -> Any:  # noqa: ANN401  (passed on)
        near = await super().nearest(vector, where, min(limit, self.most), list(ids))
        await asyncio.sleep(self.delay)
        return replace(near, cosines=dict.fromkeys(ids) | dict(near.cosines))  # as an adapter that reads `ids` again

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        self.read += ids
        return await super().chunks(scope, ids)

    async def cosines(self, vector: Any, scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:  # noqa: ANN401
        self.compared += 1
        return await super().cosines(vector, scope, ids)


class Slow(FakeEmbedder):
    """Embeds after the text leg has answered."""

    async def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        await asyncio.sleep(0.05)
        return await super().embed(texts, **options)


async def filled(**settings: Any) -> tuple[World, Store]:  # noqa: ANN401  (of the settings)
    world, store = World(), Store()
    world.vectors.store, world.service.embedder = store, Slow()
    world.service.settings = SearchSettings(answer_cache_bytes=0, **settings)
    world.service.__post_init__()
    await world.log.subscribe("indexer")
    await world.put("a.md", "the ferry leaves the harbour", "a bus leaves the square")
    await world.put("b.md", "the harbour is closed")
    return world, store


async def test_a_chunk_is_read_once() -> None:
    world, store = await filled()
    first = await world.search("an unknown word", mode=Mode.VECTOR)
    assert sorted(store.read) == sorted(store.held)
    store.read.clear()
    again = await world.search("another one", mode=Mode.VECTOR)
    assert {result.snippet for result in again.results} == {result.snippet for result in first.results}
    assert store.read == []
    await world.put("c.md", "the pier")
    assert "c.md" in {result.path for result in (await world.search("a third", mode=Mode.VECTOR)).results}
    assert len(store.read) == 1


async def test_what_the_text_leg_found_is_neither_read_nor_compared_again() -> None:
    world, store = await filled()
    store.most = 1  # the others are the text leg's alone
    answer = await world.search("the leaves")
    assert len(answer.results) == 3
    assert all(result.vector_score is not None for result in answer.results)
    assert (store.read, store.compared) == ([], 0)


async def test_what_the_text_leg_finds_while_vectors_are_compared_is_compared_after_it() -> None:
    world, store = await filled()
    world.texts.delay, store.most, store.delay = 0.1, 1, 0.2
    answer = await world.search("the leaves")
    assert answer.degraded == ()
    assert len(answer.results) == 3
    assert store.compared == 1


async def test_none_are_kept_without_memory_for_them() -> None:
    world, store = await filled(chunk_cache_bytes=0)
    for _ in range(2):
        assert len((await world.search("an unknown word", mode=Mode.VECTOR)).results) == 3
    assert len(store.read) == 6


async def test_the_memory_is_bounded() -> None:
    world, store = await filled(chunk_cache_bytes=3_000)
    for _ in range(2):
        assert len((await world.search("an unknown word", mode=Mode.VECTOR)).results) == 3
    assert len(store.read) > 3
    assert len(kept(world)) == 2


async def test_a_chunk_is_read_again_when_its_time_is_over() -> None:
    world, store = await filled(chunk_cache_seconds=1e-9)
    for _ in range(2):
        assert len((await world.search("an unknown word", mode=Mode.VECTOR)).results) == 3
    assert len(store.read) == 6


async def test_what_is_not_listed_any_more_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks_module, "_PRUNED_EVERY", 0.0)
    world, _ = await filled()
    await world.search("an unknown word", mode=Mode.VECTOR)
    assert kept(world) == {"the ferry leaves the harbour", "a bus leaves the square", "the harbour is closed"}
    await world.put("a.md", "the ferry leaves the harbour")
    await world.search("an unknown word", mode=Mode.TEXT)
    assert kept(world) == {"the ferry leaves the harbour", "the harbour is closed"}
    world.service.forget(SCOPE)
    assert kept(world) == set()


def kept(world: World) -> set[str]:
    return {entry.value.text for entry in world.service._legs.chunks._kept.values()}  # noqa: SLF001  (what is in memory)
