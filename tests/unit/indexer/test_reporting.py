"""What a status tells beside its counts, and that the metrics tell the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError
from tests.support.fakes import MemoryFileLog
from tests.support.indexing import SCOPE, Engines, World, section, until


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory())
    yield world
    await world.stop()


async def test_how_long_a_workspace_is_behind_and_why(world: World) -> None:
    world.embedder.fault = lambda texts: UnavailableError("the model is away")
    replica = await world.start()
    await world.write("a.md", section("a"))
    assert (await replica.status(SCOPE)).lag < 5
    world.clock_offset += 30

    async def failing() -> bool:
        failure = (await replica.status(SCOPE)).failure
        return failure is not None and failure.ongoing

    await until(failing)
    assert (await replica.status(Scope("acme", "empty"))).failure is None  # it is not that one's
    status = await replica.status(SCOPE)
    assert 30 <= status.lag < 40
    assert status.failure is not None
    assert (status.failure.stage, status.failure.reason, status.failure.detail) == (
        "embed",
        "UNAVAILABLE",
        "the model is away",
    )
    world.embedder.fault = lambda texts: None
    status = await world.idle()
    assert status.lag == 0
    assert status.failure is not None
    assert not status.failure.ongoing
    assert (await replica.status(Scope("acme", "empty"))).lag == 0


async def test_a_replica_that_has_just_started_tells_how_long_it_has_been(world: World) -> None:
    world.embedder.fault = lambda texts: UnavailableError("the model is away")
    await world.start()
    await world.write("a.md", section("a"))
    assert isinstance(world.engines.log, MemoryFileLog)
    world.engines.log.age(100.0)
    other = await world.start("two")
    assert 100 <= (await other.status(SCOPE)).lag < 110


async def test_the_metrics_tell_the_same(world: World) -> None:
    replica = await world.start()
    await world.write("a.md", section("a") + section("b"))
    await world.idle()
    await replica.repairer.check(SCOPE)
    await replica.reporter.tell()
    registry = world.metrics["one"]
    names = {"tenant": SCOPE.tenant, "workspace": SCOPE.workspace, "generation": "indexer"}
    values = {
        name: registry.get_sample_value(f"memoryd_workspace_{name}", names)
        for name in ("files", "chunks", "pending", "lag_seconds", "quarantined")
    }
    assert values == {"files": 1, "chunks": 2, "pending": 0, "lag_seconds": 0, "quarantined": 0}
    assert (registry.get_sample_value("memoryd_workspace_checked_timestamp_seconds", names) or 0) > 0
    await world.stop()
    assert registry.get_sample_value("memoryd_workspace_files", names) is None
