"""What every registry of generations does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.domain.generations import Generation, GenerationState, Progress
from memoryd.domain.queries import ModelInfo
from memoryd.errors import ConflictError
from memoryd.ports import Current, Generations
from tests.contract.registry import GENERATIONS, Opened, opened

LONG = 10.0  # a wait that ends as soon as what it waits for comes
MODEL = ModelInfo("e5", "f1", 384, 512, unrelated=0.7, related=0.9, engine="onnx")


@pytest.fixture(params=sorted(GENERATIONS))
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened[Generations]]:
    async with opened(GENERATIONS[request.param], tmp_path) as adapter:
        yield adapter


@pytest.fixture
def registry(held: Opened[Generations]) -> Generations:
    return held.now


@pytest.fixture(params=sorted(GENERATIONS))
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Generations, Generations]]:
    """One registry as two processes see it."""
    opener = GENERATIONS[request.param]
    async with opened(opener, tmp_path) as one, opened(opener, tmp_path) as other:
        yield one.now, other.now


def generation(name: str = "one", created: float = 1.5, *, entry: int = 0) -> Generation:
    return Generation(name, MODEL, created, entry=entry)


FULL = Generation(
    id="full",
    model=replace(MODEL, provider="elsewhere"),
    created=1764489600.25,
    state=GenerationState.DROPPING,
    versions={"chunker": "1", "analyzer": "2", "sketch": "3"},
    origin='{"model_dir": "/mödel"}',
    retired=1764489700.5,
)


class TestRecords:
    @pytest.mark.parametrize("kept", [FULL, generation()], ids=["all-fields", "defaults"])
    async def test_a_record_comes_back_as_it_was(self, registry: Generations, kept: Generation) -> None:
        put = await registry.put(kept)
        assert put.entry > 0
        assert put == replace(kept, entry=put.entry)
        assert (await registry.read()).generations == (put,)

    async def test_the_oldest_comes_first(self, registry: Generations) -> None:
        for name, created in (("b", 2.0), ("a", 3.0), ("c", 1.0)):
            await registry.put(generation(name, created))
        assert [each.id for each in (await registry.read()).generations] == ["c", "b", "a"]

    async def test_a_record_that_exists_is_not_begun_again(self, registry: Generations) -> None:
        kept = await registry.put(generation())
        with pytest.raises(ConflictError, match="one"):
            await registry.put(generation(created=9.0))
        assert (await registry.read()).generations == (kept,)

    async def test_the_second_of_two_changes_is_refused(self, two: tuple[Generations, Generations]) -> None:
        one, other = two
        begun = await one.put(generation())
        ready = await other.put(replace(begun, state=GenerationState.READY))
        with pytest.raises(ConflictError):
            await one.put(replace(begun, state=GenerationState.DROPPING))
        with pytest.raises(ConflictError):
            await one.remove(begun)
        assert (await one.read()).generations == (ready,)

    async def test_a_removed_record_can_be_begun_again_but_not_by_a_late_writer(self, registry: Generations) -> None:
        begun = await registry.put(generation())
        await registry.remove(begun)
        assert (await registry.read()).generations == ()
        with pytest.raises(ConflictError):
            await registry.put(replace(begun, state=GenerationState.READY))
        again = await registry.put(generation(created=2.0))
        assert again.entry > begun.entry
        assert (await registry.read()).generations == (again,)

    async def test_a_restart_keeps_all(self, held: Opened[Generations]) -> None:
        kept = await held.now.put(generation())
        current = await held.now.move("one", wanted="one", expected=Current())
        registry = await (await held.again()).read()
        assert (registry.generations, registry.current) == ((kept,), current)


class TestCurrent:
    async def test_there_is_none_at_first(self, registry: Generations) -> None:
        assert (await registry.read()).current == Current("", "", 0)

    async def test_it_is_moved(self, registry: Generations) -> None:
        first = await registry.move("one", wanted="one", expected=Current())
        second = await registry.move("two", wanted="three", expected=first)
        assert (second.id, second.wanted) == ("two", "three")
        assert (await registry.read()).current == second

    async def test_one_of_two_movers_wins(self, two: tuple[Generations, Generations]) -> None:
        one, other = two
        first = await one.move("one", wanted="one", expected=Current())
        with pytest.raises(ConflictError):
            await other.move("two", wanted="two", expected=Current())
        moves = (side.move(f"to {n}", wanted="", expected=first) for n, side in enumerate(two))
        ended = await asyncio.gather(*moves, return_exceptions=True)
        assert sorted(isinstance(end, ConflictError) for end in ended) == [False, True]


class TestWait:
    async def test_it_ends_with_a_change_of_another_process(self, two: tuple[Generations, Generations]) -> None:
        one, other = two
        seen = (await one.read()).sequence
        waiting = asyncio.create_task(one.wait(seen, LONG))
        begun = await other.put(generation())
        seen = await waiting
        assert (await one.read()).generations == (begun,)
        waiting = asyncio.create_task(one.wait(seen, LONG))
        await other.remove(begun)
        assert await waiting > seen

    async def test_it_ends_in_vain(self, registry: Generations) -> None:
        await registry.put(generation())
        sequence = (await registry.read()).sequence
        assert await registry.wait(sequence, 0.05) == sequence
        assert await registry.wait(sequence - 1, LONG) == sequence


class TestProgress:
    async def test_the_last_report_stands(self, registry: Generations) -> None:
        begun = await registry.put(generation())
        assert await registry.progress("one") is None
        await registry.report("one", Progress(9, 9, 0, None, "its model is away", 1.0))
        last = Progress(9, 3, 12, 4.5, "", 2.0)
        await registry.report("one", last)
        assert await registry.progress("one") == last
        assert last.done == pytest.approx(2 / 3)
        await registry.remove(begun)
        assert await registry.progress("one") is None
