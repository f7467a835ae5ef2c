"""Groups of an import: how many are embedded at a time, and in which order they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from memoryd.ports import Embeddings
from tests.support.indexing import Engines, World, section, until


class HeldEmbedder:
    """Holds each call back until a test lets it go on; every one embeds a text of its own. Counts those at work."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._embed = world.embedder.embed
        self.held: dict[str, asyncio.Event] = {}
        self.at_work = self.most_at_work = 0
        monkeypatch.setattr(world.embedder, "embed", self.embed)

    async def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        """Wait, then embed."""
        go_on = self.held[texts[0]] = asyncio.Event()
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        await go_on.wait()
        self.at_work -= 1
        return await self._embed(texts, **options)

    def let_go(self, word: str) -> None:
        """Let the call go on whose text holds a word."""
        next(event for text, event in self.held.items() if word in text).set()

    async def until_held(self, count: int) -> None:
        """Wait for this many calls."""

        async def held() -> bool:
            return len(self.held) == count

        await until(held)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An indexer whose groups are of one chunk each."""
    world = World(Engines.in_memory(), group_min_tokens=1, group_max_tokens=1)
    yield world
    await world.stop()


@pytest.fixture
def held(world: World, monkeypatch: pytest.MonkeyPatch) -> HeldEmbedder:
    """Put a held embedder in the place of the world's."""
    return HeldEmbedder(world, monkeypatch)


async def write_imports(world: World, words: Mapping[str, str]) -> None:
    """Write a file for each name, of one chunk with the word, not as a live edit."""
    for name, word in words.items():
        await world.write(f"memory/{name}.md", section(word), live=False)


_THREE = {"ash": "ash", "beech": "beech", "cedar": "cedar"}


async def test_two_groups_of_an_import_are_embedded_at_a_time_and_written_in_order(
    world: World, held: HeldEmbedder
) -> None:
    await write_imports(world, _THREE)
    await world.start()
    await held.until_held(2)
    held.let_go("beech")  # the second one is done first
    await held.until_held(3)
    assert not world.written()
    held.let_go("ash")
    held.let_go("cedar")
    await world.idle()
    calls = [call for call in world.gate.calls if call.name == "manifest.commit"]
    assert [call.arguments[0].key.path for call in calls] == ["memory/ash.md", "memory/beech.md", "memory/cedar.md"]
    await world.check_rest()


async def test_a_text_of_two_groups_is_embedded_once(world: World, held: HeldEmbedder) -> None:
    await write_imports(world, {"a": "ash", "b": "ash", "c": "cedar"})
    await world.start()
    await held.until_held(1)
    held.let_go("ash")
    await held.until_held(2)
    held.let_go("cedar")
    status = await world.idle()
    assert (status.files, world.embedded()) == (3, 2)
    await world.check_rest()


async def test_a_text_of_two_groups_is_embedded_again_where_it_failed(world: World, held: HeldEmbedder) -> None:
    failures = [ConnectionResetError()]
    world.embedder.fault = lambda _: failures.pop() if failures else None
    await write_imports(world, {"a": "ash", "b": "ash"})
    await world.start()
    await held.until_held(1)
    first = held.held.copy()
    held.let_go("ash")

    async def asked_again() -> bool:
        return held.held != first

    await until(asked_again)
    held.let_go("ash")
    status = await world.idle()
    assert (status.files, world.embedded()) == (2, 1)
    await world.check_rest()


async def test_a_throttled_import_embeds_one_group_after_the_other(world: World, held: HeldEmbedder) -> None:
    await write_imports(world, _THREE)
    replica = await world.start()
    replica.throttle.ease(0.999)
    for count, word in enumerate(("ash", "beech", "cedar"), start=1):
        await held.until_held(count)
        held.let_go(word)
    await world.idle()
    assert held.most_at_work == 1
    await world.check_rest()
