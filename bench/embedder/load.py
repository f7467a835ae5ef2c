"""Callers: bulk, queries, many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count

from bench.embedder.texts import Corpus
from memoryd.errors import MemorydError
from memoryd.ports import Embedder, Lane, StreamingEmbedder, TextKind

_CALLERS = 4
_TEXTS_A_CALL = 128
_PATIENCE = 600.0


async def bulk_rate(
    embedder: Embedder, texts: Sequence[str], callers: int = _CALLERS, size: int = _TEXTS_A_CALL
) -> float:
    """Embed texts once, in the order given; tokens a second."""
    parts = iter([texts[first : first + size] for first in range(0, len(texts), size)])
    tokens = 0

    async def call() -> None:
        nonlocal tokens
        for part in parts:
            done = await embedder.embed(part, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=_PATIENCE)
            tokens += done.tokens

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())
    return tokens / (time.perf_counter() - began)


async def stream_rate(embedder: StreamingEmbedder, texts: Sequence[str], *, sketches: bool = False) -> float:
    """Embed texts in one stream; tokens a second."""
    began = time.perf_counter()
    answers = embedder.embed_stream(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=_PATIENCE, sketches=sketches)
    tokens = sum([answer.tokens async for answer in answers])
    return tokens / (time.perf_counter() - began)


async def query(embedder: Embedder, text: str) -> float:
    """Embed one query; seconds."""
    began = time.perf_counter()
    await embedder.embed([text], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
    return time.perf_counter() - began


class Saturation:
    """Bulk without an end; counts the tokens that were embedded."""

    def __init__(self) -> None:
        self._tokens = 0
        self._began = time.perf_counter()

    def reset(self) -> None:
        """Begin to count anew."""
        self._tokens, self._began = 0, time.perf_counter()

    @property
    def rate(self) -> float:
        """Tokens a second since `reset`."""
        return self._tokens / (time.perf_counter() - self._began)

    async def run(self, embedder: Embedder, texts: Sequence[str], numbers: count[int]) -> None:
        """Embed one small call after another, until cancelled."""
        size = 16  # small, so that the count follows the work closely
        while True:
            first = next(numbers) * size % max(len(texts) - size, 1)
            done = await embedder.embed(
                texts[first : first + size], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=_PATIENCE
            )
            self._tokens += done.tokens


@asynccontextmanager
async def saturated(embedder: Embedder, corpus: Corpus, callers: int = 12) -> AsyncIterator[Saturation]:
    """Keep the bulk lane full."""
    saturation, numbers = Saturation(), count()
    tasks = [asyncio.create_task(saturation.run(embedder, corpus.texts, numbers)) for _ in range(callers)]
    try:
        yield saturation
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Outcomes:
    """How calls ended, and after how many seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    async def call(self, embedder: Embedder, texts: Sequence[str], timeout: float) -> None:
        """Make one bulk call and note how it ends."""
        began, outcome = time.perf_counter(), "OK"
        try:
            await embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=timeout)
        except MemorydError as error:
            outcome = error.reason
        self.seconds.setdefault(outcome, []).append(time.perf_counter() - began)

    def count(self, outcome: str) -> int:
        """How many ended so."""
        return len(self.seconds.get(outcome, ()))
