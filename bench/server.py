"""A standalone whose passages get made-up vectors, so that a large index is there in seconds; queries use the model."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np

from memoryd.domain.queries import ModelInfo
from memoryd.errors import MemorydError
from memoryd.logs import LogSettings, configure
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer
from memoryd.server.lifecycle import Server, until_signal
from memoryd.server.settings import ServerSettings
from services.embedder.compose import open_embedder
from services.gateway.rpc import add_to
from services.standalone.app import open_standalone
from services.standalone.index import index_all
from services.standalone.keys import leave_endpoint
from services.standalone.settings import load


class MadeUpPassages:
    """Embeds queries with the model, and passages by a hash of their text."""

    def __init__(self, model: Embedder) -> None:
        self._model = model

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return await self._model.info()

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer."""
        return await self._model.tokenizer()

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        """Embed queries; make vectors and sketches up for passages."""
        if kind is TextKind.QUERY:
            return await self._model.embed(
                texts, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant
            )
        dimensions = (await self._model.info()).dimensions
        vectors = np.stack([_vector(text, dimensions) for text in texts])
        width = -(-dimensions // 8)
        made_up = tuple(_bits(text, width * (len(text) // 4)) for text in texts) if sketches else ()
        return Embeddings(vectors, sum(map(len, texts)) // 4, made_up)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Pass on."""
        return await self._model.rerank(query, texts, timeout=timeout)


def _vector(text: str, dimensions: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    vector = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _bits(text: str, size: int) -> bytes:
    return hashlib.shake_128(text.encode()).digest(size)


INDEXED = "indexed.json"
"""File in the data directory: seconds that indexing took after the start, without the time to load the model."""


async def main(folder: Path, data: Path, *, real: bool) -> None:
    """Index a folder, then serve until SIGTERM; the endpoint file appears when everything is indexed.

    `real`: use the model for passages, too, and serve at once.
    """
    configure(LogSettings(level="warning"))  # a line a call would be measured too
    settings = load(data_dir=data, workspaces=[{"path": folder}], grpc=ServerSettings(address="127.0.0.1:0"))
    settings = settings.model_copy(update={"search": settings.search.without_caches()})
    async with until_signal(), open_embedder(settings.embedder) as model, AsyncExitStack() as stack:
        began = time.perf_counter()
        embedder = model if real else MadeUpPassages(model)
        standalone = await stack.enter_async_context(open_standalone(settings, embedder=embedder))
        if not real:
            await index_all(standalone, settings.workspaces[0].scope, lambda *_: None)
            (data / INDEXED).write_text(json.dumps(time.perf_counter() - began))
        server = Server(settings.grpc)
        add_to(server, standalone.gateway, standalone.keys)
        async with server:
            await leave_endpoint(settings, standalone.keys, server.address)
            await server.serve()


if __name__ == "__main__":
    try:
        asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), real="--real" in sys.argv))
    except MemorydError as error:
        sys.exit(str(error))
