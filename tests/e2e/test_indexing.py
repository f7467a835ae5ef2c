"""The cases of indexing on the engines of both shapes, and the commit protocol, with a constant-time embedder."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.adapters.embedded.text import TantivyTextStore
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from tests.contract import registry
from tests.support.fakes import DIMENSIONS
from tests.support.indexing import Engines, World
from tests.support.indexing_cases import IndexingCases
from tests.support.protocol_machine import check_protocol

LEASE = 3600.0  # a test says itself when a delivery comes again


async def _embedded(stack: AsyncExitStack, folder: Path) -> Engines:
    log = await SqliteFileLog.open(folder / "log.db", lease=LEASE)
    stack.push_async_callback(log.close)
    manifest = await SqliteManifest.open(folder / "manifest.db")
    stack.push_async_callback(manifest.close)
    vectors = await EdgeVectorStore.open(folder / "vectors", DIMENSIONS)
    stack.push_async_callback(vectors.close)
    texts = await TantivyTextStore.open(folder / "text")
    stack.push_async_callback(texts.close)
    return Engines(log, manifest, vectors, texts)


async def _in_a_new_folder(stack: AsyncExitStack) -> Engines:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return await _embedded(stack, Path(folder))


async def _on_servers(stack: AsyncExitStack, place: Path) -> Engines:
    log = await registry.FILE_LOGS["nats"](place, LEASE)
    manifest = await registry.MANIFESTS["nats"](place)
    vectors = await registry.VECTOR_STORES["qdrant"](place)
    texts = await registry.TEXT_STORES["opensearch"](place)
    opened: tuple[Any, ...] = (log, manifest, vectors, texts)
    for engine in opened:
        stack.push_async_callback(engine.close)
    return Engines(log, manifest, vectors, texts)


@pytest.fixture
async def engines(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engines]:
    async with AsyncExitStack() as stack:
        yield await request.cls.open(stack, tmp_path)


@pytest.fixture
async def world(engines: Engines) -> AsyncIterator[World]:
    world = World(engines)
    yield world
    await world.stop()


class TestEmbedded(IndexingCases):
    """On the embedded engines."""

    open = staticmethod(_embedded)


class TestServers(IndexingCases):
    """On NATS, Qdrant and OpenSearch."""

    open = staticmethod(_on_servers)


def test_protocol() -> None:
    """S1, S2, S3 and L1: see the machine."""
    check_protocol(_in_a_new_folder, examples=60, steps=40)
