"""Probing the parts: each is asked, one that fails or hangs is named, and the others are told all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.errors import STORE_LOST, UnavailableError
from memoryd.ports import Filter, QueryTerm
from tests.support.fakes import MemoryManifest, MemoryTextStore
from tests.support.indexing import SCOPE, Engines, World


class Lost(MemoryTextStore):
    """A text store without its index."""

    async def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[tuple[str, float]]:
        raise UnavailableError("OpenSearch at 10.0.0.7 has lost its index", reason=STORE_LOST)


class Hung(MemoryManifest):
    """A manifest that never answers."""

    async def outline(self, key: FileKey) -> Outline | None:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory(), glance_interval=3600.0)
    yield world
    await world.stop()


async def test_each_part_answers(world: World) -> None:
    replica = await world.start()
    parts = {part.part: part for part in await replica.probe(Scope("acme", "never-seen"), 5.0)}
    assert list(parts) == ["embedder", "vector store", "text store", "file log", "manifest"]
    assert {part.reason for part in parts.values()} == {""}
    assert min(part.milliseconds for part in parts.values()) > 0


async def test_what_fails_and_what_hangs_is_named(world: World) -> None:
    world.engines.texts = Lost()
    replica = await world.start()
    replica._prober._manifest = Hung()  # noqa: SLF001  (the indexer itself would not get on with it)
    parts = await replica.probe(SCOPE, 0.05)
    assert {part.part: part.reason for part in parts if part.reason} == {
        "text store": STORE_LOST,
        "manifest": "DEADLINE_EXCEEDED",
    }
