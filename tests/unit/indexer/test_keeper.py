"""The keeper: when the next generation answers, and what becomes of the others."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from memoryd.domain.files import FileKey, FileState
from memoryd.domain.generations import Generation, GenerationState, generation_id
from memoryd.domain.names import Scope
from memoryd.domain.queries import ModelInfo
from memoryd.generations.admin import begin, use
from memoryd.generations.live import Live
from memoryd.generations.parts import Parts
from services.indexer.generation import IndexedGeneration
from services.indexer.keeper import Keeper
from services.indexer.service import Indexer
from services.indexer.settings import GenerationSettings
from services.indexer.throttle import Throttle
from tests.support.eventually import eventually
from tests.support.fake_generations import MemoryGenerations
from tests.support.fakes import FakeEmbedder, MemoryFileLog, MemoryManifest, MemoryTextStore, MemoryVectorStore

SCOPE = Scope("acme", "main")
OLD = ModelInfo("old", "f1", 4, 128, unrelated=0.1, related=0.7, engine="onnx")
NEW = replace(OLD, name="new", fingerprint="f2")


@dataclass
class StillIndexer:
    """An indexer that a test does the work of."""

    throttle: Throttle = field(default_factory=Throttle)


class World:
    """A deployment with one file, in which only the keeper is real."""

    def __init__(self) -> None:
        self.registry, self.log = MemoryGenerations(), MemoryFileLog()
        self.erased: list[str] = []
        self.configured: ModelInfo | None = OLD
        self.settings = GenerationSettings(drop_grace=0.0)
        self.live = Live(self.registry, self._open)

    @asynccontextmanager
    async def _open(self, generation: Generation) -> AsyncIterator[IndexedGeneration]:
        await self.log.subscribe(generation.id)
        parts = Parts(
            generation, FakeEmbedder(), MemoryManifest(), MemoryVectorStore(), MemoryTextStore(), generation.id
        )
        indexed = IndexedGeneration(parts, cast("Indexer", StillIndexer()))
        indexed.started = True
        yield indexed

    async def _erase(self, generation: Generation) -> None:
        self.erased.append(generation.id)

    def keeper(self, *, restarted: bool = False) -> Keeper[IndexedGeneration]:
        return Keeper(
            registry=self.registry,
            live=self.live,
            indexed_of=lambda generation: generation,
            log=self.log,
            target=lambda: (self.configured, "") if self.configured else None,
            erase=self._erase,
            settings=self.settings,
            restarted=restarted,
        )

    async def catch_up(self, model: ModelInfo) -> None:
        for delivery in await self.log.fetch(generation_id(model), limit=10, timeout=0.0):
            await delivery.ack()

    async def states(self) -> dict[str, str]:
        known = await self.registry.read()
        return {
            each.model.name: each.state + (", answers" if each.id == known.current.id else "")
            for each in known.generations
        }

    async def record(self, model: ModelInfo) -> Generation:
        found = (await self.registry.read()).get(generation_id(model))
        assert found is not None
        return found


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """The old model's generation is complete and answers."""
    world = World()
    state = FileState(key=FileKey(SCOPE, "a.md"), hash="h", content=b"text\n", modified=1.5)
    await world.log.put(state, expected=None, live=False)
    await begin(world.registry, OLD)
    await world.live.start()
    await world.catch_up(OLD)
    await world.keeper().look()
    assert await world.states() == {"old": "ready, answers"}
    yield world
    await world.live.close()


async def test_the_next_answers_when_it_has_caught_up_and_no_sooner(world: World) -> None:
    world.configured, keeper = NEW, world.keeper()
    for _ in range(2):
        await keeper.look()
    assert await world.states() == {"old": "ready, answers", "new": "building"}
    progress = await world.registry.progress(generation_id(NEW))
    assert progress is not None
    assert (progress.files, progress.pending, progress.done) == (1, 1, 0.0)
    shares = {each.parts.generation.model.name: each.indexer.throttle.share for each in world.live.bundles.values()}
    assert shares == {"old": 1.0, "new": 0.5}
    await world.catch_up(NEW)
    await keeper.look()
    assert await world.states() == {"old": "ready", "new": "ready, answers"}
    await keeper.look()
    shares = {each.parts.generation.model.name: each.indexer.throttle.share for each in world.live.bundles.values()}
    assert shares == {"old": 0.5, "new": 1.0}


async def test_who_moves_the_key_back_has_the_last_word(world: World) -> None:
    world.configured = NEW
    await world.keeper().look()
    await world.catch_up(NEW)
    await world.keeper().look()
    await use(world.registry, generation_id(OLD))
    for keeper in (world.keeper(), world.keeper(restarted=True)):
        await keeper.look()
        assert await world.states() == {"old": "ready, answers", "new": "ready"}


@pytest.mark.parametrize(("restarted", "answers"), [(True, "old"), (False, "new")])
async def test_a_former_model_that_is_configured_again(world: World, restarted: bool, answers: str) -> None:
    world.configured = NEW
    await world.keeper().look()
    await world.catch_up(NEW)
    await world.keeper().look()
    world.configured = OLD
    await world.keeper(restarted=restarted).look()
    assert (await world.states())[answers] == "ready, answers"


async def test_a_generation_whose_model_is_away_is_never_complete(world: World) -> None:
    world.configured, keeper = NEW, world.keeper()
    await keeper.look()
    world.live.bundles[generation_id(NEW)].started = False
    await world.catch_up(NEW)
    await keeper.look()
    assert await world.states() == {"old": "ready, answers", "new": "building"}


async def test_what_nobody_wants_for_long_is_removed(world: World) -> None:
    world.configured, keeper = NEW, world.keeper()
    await keeper.look()
    await world.catch_up(NEW)
    await keeper.look()
    retired = await world.record(OLD)
    assert retired.retired is not None
    await keeper.look()
    assert await world.record(OLD) == retired
    await world.registry.put(replace(retired, retired=time.time() - 8 * 86_400))

    async def looked() -> dict[str, str]:
        await keeper.look()
        return await world.states()

    await eventually(looked, {"new": "ready, answers"})
    assert world.erased == [generation_id(OLD)]


async def test_while_no_model_can_be_told_nothing_is_retired(world: World) -> None:
    world.configured = None
    other = await begin(world.registry, NEW)
    await world.keeper().look()
    assert (await world.record(NEW)).retired == other.retired is None


async def test_one_that_was_chosen_while_it_was_given_up_is_kept(world: World) -> None:
    world.configured = None
    await world.registry.put(replace(await world.record(OLD), state=GenerationState.DROPPING, retired=1.0))
    await world.keeper().look()
    assert await world.states() == {"old": "ready, answers"}
    assert world.erased == []
