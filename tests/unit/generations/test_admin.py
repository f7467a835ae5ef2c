"""What an operator may do to generations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoryd.domain.generations import Generation, GenerationState, generation_id
from memoryd.domain.queries import ModelInfo
from memoryd.errors import InvalidInputError, NotFoundError, PreconditionFailedError
from memoryd.generations.admin import begin, drop, statuses, use
from memoryd.ports import Current
from tests.support.fake_generations import MemoryGenerations

MODEL = ModelInfo("tiny", "f1", 4, 128, unrelated=0.1, related=0.7, engine="onnx")
OTHER = replace(MODEL, name="other", fingerprint="f2")


async def with_states(**states: str) -> MemoryGenerations:
    registry = MemoryGenerations()
    for n, (name, state) in enumerate(states.items()):
        await registry.put(Generation(name, MODEL, float(n), GenerationState(state), retired=1.0 if n else None))
    await registry.move(next(iter(states)), wanted="wanted", expected=Current())
    return registry


async def test_the_first_generation_answers_at_once_and_the_next_does_not() -> None:
    registry = MemoryGenerations()
    first = await begin(registry, MODEL)
    second = await begin(registry, OTHER, origin="where it was")
    assert [first.id, second.id] == [generation_id(MODEL), generation_id(OTHER)]
    known = await registry.read()
    assert (known.current.id, [each.id for each in known.generations]) == (first.id, [first.id, second.id])
    moved = await begin(registry, OTHER, origin="where it is")
    assert (moved.created, moved.origin) == (second.created, "where it is")
    assert await begin(registry, OTHER) == moved
    assert [(each.generation.id, each.current) for each in await statuses(registry)] == [
        (first.id, True),
        (second.id, False),
    ]


async def test_what_is_wanted_again_is_not_retired_any_more() -> None:
    registry = MemoryGenerations()
    begun = await begin(registry, MODEL)
    await registry.put(replace(begun, retired=1.0))
    assert (await begin(registry, MODEL)).retired is None


async def test_another_one_answers() -> None:
    registry = await with_states(old="ready", new="ready")
    assert (await use(registry, "ne")).id == "new"
    current = (await registry.read()).current
    assert (current.id, current.wanted) == ("new", "wanted")
    assert (await use(registry, "new")).id == "new"
    assert (await registry.read()).current == current


@pytest.mark.parametrize("state", ["building", "dropping"])
async def test_one_that_is_not_complete_can_not_answer(state: str) -> None:
    registry = await with_states(old="ready", new=state)
    with pytest.raises(PreconditionFailedError, match=f"generation new is {state}"):
        await use(registry, "new")


async def test_names_that_do_not_fit() -> None:
    registry = await with_states(new1="ready", new2="ready")
    for name in ("newer", ""):
        with pytest.raises(NotFoundError, match="there are: new1, new2"):
            await use(registry, name)
    with pytest.raises(InvalidInputError, match="several"):
        await drop(registry, "new")


async def test_what_nobody_wants_is_given_up_and_nothing_else() -> None:
    registry = await with_states(old="ready", new="ready")
    with pytest.raises(PreconditionFailedError, match="answers searches"):
        await drop(registry, "old")
    dropped = await drop(registry, "new")
    assert dropped.state is GenerationState.DROPPING
    assert await drop(registry, "new") == dropped
    other = await begin(registry, OTHER)
    with pytest.raises(PreconditionFailedError, match="configured model"):
        await drop(registry, other.id)
