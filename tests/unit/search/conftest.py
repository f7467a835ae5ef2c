"""What several test modules of the search service search in."""

from __future__ import annotations

import pytest

from tests.support.searching import World


@pytest.fixture
async def world() -> World:
    made = World()
    await made.log.subscribe("indexer")
    await made.put("a.md", "the ferry leaves the harbour", "a bus leaves the square")
    await made.put("b.md", "the harbour is closed")
    return made
