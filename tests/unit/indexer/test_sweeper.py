"""The sweeper: what it deletes, when, and what it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from memoryd.domain.chunks import Chunk
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.ports import EmbeddedChunk
from tests.support.fakes import vector_of
from tests.support.gate import Outcome
from tests.support.indexing import SCOPE, Engines, World, ids, section, until, until_waiting


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory(), grace=60.0)
    yield world
    await world.stop()


async def put_chunk(world: World, path: str, sequence: int) -> str:
    """Leave a chunk in both stores, as an indexer does that crashes before its commit."""
    chunk = Chunk(
        id=f"left-{sequence}",
        key=FileKey(SCOPE, path),
        text="left",
        breadcrumb="",
        source=Source.MEMORY,
        private=False,
        date="",
        tags=(),
        birth=Revision(1, sequence),
        text_hash="left",
        terms="left",
        heading_terms="",
    )
    await world.engines.vectors.upsert([EmbeddedChunk(chunk, vector_of("left"))])
    await world.engines.texts.upsert([chunk])
    return chunk.id


async def held(world: World) -> list[int]:
    return [len(await ids(store)) for store in (world.engines.vectors, world.engines.texts)]


async def test_a_dropped_chunk_outlives_the_grace_and_no_longer(world: World) -> None:
    replica = await world.start()
    await world.write("memory/a.md", section("old"))
    await world.idle()
    await world.write("memory/a.md", section("new"))
    await world.idle()
    world.clock_offset += 59.0
    assert await replica.sweeper.sweep() == 0
    assert await held(world) == [2, 2]
    world.clock_offset += 2.0
    assert await replica.sweeper.sweep() == 1
    assert await held(world) == [1, 1]


async def test_each_chunk_has_its_own_grace(world: World) -> None:
    replica = await world.start()
    for word in "first", "second", "third":
        await world.write("memory/a.md", section(word))
        await world.idle()
        world.clock_offset += 40.0
    assert await replica.sweeper.sweep() == 1
    world.clock_offset += 40.0
    assert await replica.sweeper.sweep() == 1
    assert await held(world) == [1, 1]


async def test_the_sweep_over_everything_finds_what_a_crash_has_left(world: World) -> None:
    replica = await world.start()
    await world.write("memory/a.md", section("here"))
    await world.idle()
    await put_chunk(world, "memory/a.md", 1)
    await replica.sweeper.look_over()
    assert await replica.sweeper.sweep() == 0
    world.clock_offset += 61.0
    assert await replica.sweeper.sweep() == 1
    await world.stop()
    await world.check_l1()


async def test_what_a_lost_race_has_left_is_collected_soon(world: World) -> None:
    world.gate.stepping = True
    slow = await world.start("slow")
    await world.write("memory/a.md", section("slow"))
    commit = await until_waiting(world.gate, "manifest.commit", "slow")
    await world.start("two")
    await world.write("memory/a.md", section("newer"))
    await until_waiting(world.gate, "delivery.ack", "two")
    await world.gate.step(commit)
    world.gate.open()
    await world.idle()
    assert await held(world) == [2, 2]
    for collected in 0, 1:  # seen unlisted for the first time, and after the grace
        world.clock_offset += 61.0
        assert await slow.sweeper.sweep() == collected
    assert await held(world) == [1, 1]


async def test_without_an_outline_nothing_is_deleted(world: World) -> None:
    replica = await world.start()
    await put_chunk(world, "memory/unknown.md", 1)
    await replica.sweeper.look_over()
    replica.sweeper.unlisted(FileKey(SCOPE, "memory/unknown.md"), ["left-1"])
    world.clock_offset += 61.0
    assert await replica.sweeper.sweep() == 0
    assert await held(world) == [1, 1]


async def test_what_is_born_after_the_outline_is_left_alone(world: World) -> None:
    replica = await world.start()
    await world.write("memory/a.md", section("here"))
    await world.idle()
    await put_chunk(world, "memory/a.md", 9)
    await replica.sweeper.look_over()
    replica.sweeper.unlisted(FileKey(SCOPE, "memory/a.md"), ["left-9"])
    world.clock_offset += 61.0
    assert await replica.sweeper.sweep() == 0
    assert await held(world) == [2, 2]


async def test_a_sweep_ends_only_when_the_one_at_work_has(world: World) -> None:
    world.settings.grace = 0.0
    replica = await world.start()
    await world.write("memory/a.md", section("old"))
    await world.idle()
    world.gate.stepping = True
    await world.delete("memory/a.md")
    await until_waiting(world.gate, "vectors.delete")
    sweep = asyncio.create_task(replica.sweeper.sweep())
    await world.gate.quiet()
    assert not sweep.done()
    world.gate.open()
    await sweep
    assert await held(world) == [0, 0]


@pytest.mark.parametrize("failing", ["vectors.delete", "texts.delete", "vectors.scan", "manifest.outline"])
@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.UNANSWERED])
async def test_it_survives_what_fails_and_tries_again(world: World, failing: str, outcome: Outcome) -> None:
    world.settings.grace = 0.0
    await world.start()
    await world.write("memory/a.md", section("old"))
    await world.idle()
    world.gate.stepping = True
    await world.delete("memory/a.md")
    await until_waiting(world.gate, "delivery.ack")
    await world.gate.step(await until_waiting(world.gate, failing), outcome)
    world.gate.open()

    async def empty() -> bool:
        return await held(world) == [0, 0]

    await until(empty)
    await world.check_rest()
