"""Interleavings that random search seldom finds, step by step: without the rule that each is about, it breaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from memoryd.domain.files import FileKey, FileState
from memoryd.domain.queries import SearchAnswer
from tests.support.asking import Asker
from tests.support.gate import Outcome, Waiting
from tests.support.indexing import Engines, World, ids, section, until_waiting

PATH = "memory/a.md"
LEGS = {"vectors.nearest", "texts.search"}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory(), grace=3600.0)
    yield world
    await world.stop()


def waiting(world: World, actor: str) -> list[Waiting]:
    return [each for each in world.gate.waiting if each.actor == actor]


async def advance(world: World, actor: str, hold: set[str]) -> None:
    """Let one actor go on until all that it waits for is to be held."""
    await world.gate.quiet()
    while going := [each for each in waiting(world, actor) if each.name not in hold]:
        await world.gate.step(going[0])


async def release(world: World, actor: str, names: set[str], outcome: Outcome = Outcome.DONE) -> None:
    """Let the calls of these names go on that an actor waits for."""
    held = [each for each in waiting(world, actor) if each.name in names]
    assert {each.name for each in held} == names
    for each in held:
        await world.gate.step(each, outcome)


async def commit_another_state(world: World) -> None:
    await world.write(PATH, section("moss"))
    await until_waiting(world.gate, "delivery.ack", "one")


async def begin_search(world: World, asker: Asker) -> asyncio.Task[SearchAnswer]:
    """Begin a search of a file that is indexed, and hold both legs."""
    await world.start("one")
    await world.write(PATH, section("iris"))
    await world.idle()
    world.gate.stepping = True

    async def ask() -> SearchAnswer:
        asked = await asker.ask()
        asker.check(asked)
        return asked.answer

    search = asyncio.create_task(ask())
    await advance(world, "search", LEGS)
    return search


async def test_a_commit_after_the_legs_takes_nothing_from_a_search(world: World) -> None:
    """C1: with the outlines read after the legs, neither state would be found."""
    search = await begin_search(world, Asker(world))
    await release(world, "search", LEGS)
    await advance(world, "search", {"manifest.view"})
    await commit_another_state(world)
    world.gate.open()
    (result,) = (await search).results
    assert "iris" in result.snippet


async def test_a_commit_between_the_legs_mixes_no_states(world: World) -> None:
    """S1: with outlines of its own for each leg, both states would be shown."""
    search = await begin_search(world, Asker(world))
    await release(world, "search", {"vectors.nearest"})
    await advance(world, "search", {"texts.search"})
    await commit_another_state(world)
    world.gate.open()
    (result,) = (await search).results
    assert "iris" in result.snippet


async def test_the_grace_leaves_a_search_what_it_goes_by(world: World) -> None:
    """C1: without it, the sweeper would be faster than the legs."""
    search = await begin_search(world, Asker(world))
    await commit_another_state(world)
    for _ in range(40):
        for call in waiting(world, "one")[:1]:
            await world.gate.step(call)
    world.gate.open()
    (result,) = (await search).results
    assert "iris" in result.snippet


async def purge(world: World, asker: Asker) -> None:
    asked = asyncio.create_task(asker.purge(PATH))
    await advance(world, "purge", set())
    await asked


async def search_without_manifest(world: World, asker: Asker) -> SearchAnswer:
    """Search by the outlines that were read last."""
    search = asyncio.create_task(asker.ask())
    await advance(world, "search", {"manifest.view"})
    await release(world, "search", {"manifest.view"}, Outcome.REFUSED)
    await advance(world, "search", set())
    asked = await search
    asker.check(asked)
    return asked.answer


async def test_a_purge_outwaits_a_slow_indexer_before_it_is_verified(world: World) -> None:
    """P2 and P1: with a receipt given at once, the slow one's text would be there after it, and be found."""
    world.gate.stepping = True
    asker = Asker(world)
    await world.start("slow")
    await world.write(PATH, section("iris"))
    await until_waiting(world.gate, "vectors.upsert", "slow")
    await world.deliver_again()
    await world.start("one")
    await until_waiting(world.gate, "delivery.ack", "one")
    search = asyncio.create_task(asker.ask())
    await advance(world, "search", set())
    assert (await search).answer.results
    await world.put(FileState.deletion(FileKey(world.scope, PATH), time.time()))
    await release(world, "one", {"delivery.ack"})
    await until_waiting(world.gate, "delivery.ack", "one")

    await purge(world, asker)
    assert await ids(world.engines.vectors) == await ids(world.engines.texts) == set()
    await release(world, "slow", {"vectors.upsert", "texts.upsert"})
    assert len(await ids(world.engines.vectors) & await ids(world.engines.texts)) == 1
    await asker.check_stores()
    await search_without_manifest(world, asker)
    assert not asker.purged

    world.settings.lease = 0.0  # the slow one's is over
    await purge(world, asker)
    assert asker.purged == {PATH: world.last[PATH]}
    await asker.check_stores()
    assert not (await search_without_manifest(world, asker)).results
