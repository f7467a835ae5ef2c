"""The cases of indexing, on ports in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.indexing import Engines, World
from tests.support.indexing_cases import IndexingCases


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory())
    yield world
    await world.stop()


class TestInMemory(IndexingCases):
    """On ports in memory."""
