"""Which generations are open, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from memoryd.domain.generations import Generation, GenerationState
from memoryd.domain.queries import ModelInfo
from memoryd.errors import UnavailableError
from memoryd.generations.live import Live
from memoryd.ports import Current
from tests.support.eventually import eventually
from tests.support.fake_generations import MemoryGenerations

MODEL = ModelInfo("tiny", "f1", 4, 128, unrelated=0.1, related=0.7, engine="onnx")


class Doors:
    """Opens bundles, which are their generations' ids, and says which are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.stuck: set[str] = set()

    @asynccontextmanager
    async def __call__(self, generation: Generation) -> AsyncIterator[str]:
        if generation.id in self.stuck:
            raise UnavailableError("the door is stuck")
        self.open.append(generation.id)
        yield generation.id
        self.open.remove(generation.id)


@pytest.fixture
async def registry() -> MemoryGenerations:
    registry = MemoryGenerations()
    for n, name in enumerate(("old", "new")):
        await registry.put(Generation(name, replace(MODEL, fingerprint=name), created=float(n)))
    await registry.move("old", wanted="old", expected=Current())
    return registry


async def move(registry: MemoryGenerations, name: str) -> None:
    await registry.move(name, wanted=name, expected=(await registry.read()).current)


async def test_all_are_open_and_one_answers(registry: MemoryGenerations) -> None:
    doors = Doors()
    live = Live(registry, doors)
    await live.start()
    assert (doors.open, live.current, live.coming) == (["old", "new"], "old", (await registry.read()).get("new"))
    await move(registry, "new")
    await live.refresh()
    assert (doors.open, live.current) == (["old", "new"], "new")
    await live.close()
    assert doors.open == []
    with pytest.raises(UnavailableError):
        _ = live.current


async def test_a_call_keeps_open_what_it_uses(registry: MemoryGenerations) -> None:
    doors = Doors()
    live = Live(registry, doors, current_only=True)
    await live.start()
    assert doors.open == ["old"]
    async with live.using() as (name, bundle):
        await move(registry, "new")
        await live.refresh()
        assert (name, bundle, live.current) == ("old", "old", "new")
        assert sorted(doors.open) == ["new", "old"]
        assert live.busy

    async def still_open() -> list[str]:
        return doors.open

    await eventually(still_open, ["new"])
    await live.close()


async def test_what_is_given_up_is_closed(registry: MemoryGenerations) -> None:
    doors = Doors()
    live = Live(registry, doors)
    await live.start()
    await registry.put(replace((await registry.read()).generations[1], state=GenerationState.DROPPING))
    await live.refresh()

    async def still_open() -> list[str]:
        return doors.open

    await eventually(still_open, ["old"])
    assert live.coming is None
    await live.close()


async def test_what_can_not_be_opened_is_tried_again_and_the_old_one_answers(registry: MemoryGenerations) -> None:
    doors = Doors()
    doors.stuck = {"new"}
    live = Live(registry, doors)
    await live.start()
    await move(registry, "new")
    await live.refresh()
    assert (doors.open, live.current) == (["old"], "old")
    doors.stuck = set()
    await live.refresh()
    assert live.current == "new"
    await live.close()


async def test_a_start_without_the_current_one_fails(registry: MemoryGenerations) -> None:
    doors = Doors()
    doors.stuck = {"old"}
    with pytest.raises(UnavailableError, match="stuck"):
        await Live(registry, doors).start()


async def test_it_follows_the_registry(registry: MemoryGenerations) -> None:
    live = Live(registry, Doors())
    await live.start()
    following = asyncio.create_task(live.run())
    await move(registry, "new")

    async def answers() -> str:
        return live.current

    await eventually(answers, "new")
    following.cancel()
    await live.close()
