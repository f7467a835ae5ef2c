"""What many callers at once get: errors, latency beside an idle server's, searches beside the raw embedding rate."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

from bench.corpus import write_corpus
from bench.figures import Figure, percentile
from bench.processes import cpu_seconds
from bench.search import queries_of, serving
from memoryd.client import MemorydClient
from memoryd.errors import MemorydError
from memoryd.ports import Lane, TextKind
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings

_WARMING_ROUNDS, _IDLE_ROUNDS = 20, 100
_RAW_SECONDS = 10.0


async def run(chunks: int, callers: int, seconds: float) -> list[Figure]:
    """Let `callers` search an index of about `chunks` chunks for so long, each as soon as it has its answer."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, data = Path(temporary, "notes"), Path(temporary, "data")
        write_corpus(folder, chunks)
        async with serving(folder, data) as (client, process):
            queries, numbers = queries_of(1000), count()
            for _ in range(_WARMING_ROUNDS):
                await _search(client, _next(queries, numbers), Counter())
            began = cpu_seconds(process)
            idle = [await _search(client, _next(queries, numbers), Counter()) for _ in range(_IDLE_ROUNDS)]
            alone = (cpu_seconds(process) - began) / len(idle) * 1000
            raw = await _raw_rate(queries, callers)
            outcomes: Counter[str] = Counter()
            began = cpu_seconds(process)
            times = await _all(lambda: _search(client, _next(queries, numbers), outcomes), callers, seconds)
            beside = (cpu_seconds(process) - began) / len(times) * 1000
    base, p95, rate = statistics.median(idle), percentile(times, 0.95), len(times) / seconds
    return [
        Figure("search by one caller, p50", base, "ms"),
        Figure(f"search by {callers} callers, p50", statistics.median(times), "ms"),
        Figure(f"search by {callers} callers, p95", p95, "ms", "search by one caller, p50", p95 / base),
        Figure(f"query embedding by {callers} callers", raw, "a second"),
        Figure(f"search by {callers} callers", rate, "a second", f"query embedding by {callers} callers", rate / raw),
        Figure("processor time of a search by one caller", alone, "ms"),
        Figure(f"processor time of a search by {callers} callers", beside, "ms"),
        Figure("errors", outcomes["error"], "searches"),
        Figure("degraded answers", outcomes["degraded"], "searches"),
    ]


def _next(queries: list[str], numbers: Iterator[int]) -> str:
    """Give a query that was not asked before."""
    number = next(numbers)
    return f"{queries[number % len(queries)]} {number}"


async def _search(client: MemorydClient, query: str, outcomes: Counter[str]) -> float:
    """Search; gives milliseconds."""
    began = time.perf_counter()
    try:
        reply = await client.search(query, min_score=0.0)
        outcomes["degraded"] += bool(reply.degraded)
    except MemorydError:
        outcomes["error"] += 1
    return (time.perf_counter() - began) * 1000


async def _raw_rate(queries: list[str], callers: int) -> float:
    """Embed queries, as many at a time, with nothing around the model; gives embeddings a second."""
    numbers = count()
    async with open_embedder(EmbedderSettings()) as embedder:

        async def embed() -> float:
            query = _next(queries, numbers)
            await embedder.embed([query], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=60.0)
            return 0.0

        await embed()
        return len(await _all(embed, callers, _RAW_SECONDS)) / _RAW_SECONDS


async def _all(call: Callable[[], Awaitable[float]], callers: int, seconds: float) -> list[float]:
    """Let callers call again and again; gives what those calls gave that began in time."""
    end = time.monotonic() + seconds
    values: list[float] = []

    async def caller() -> None:
        while time.monotonic() < end:
            values.append(await call())

    await asyncio.gather(*(caller() for _ in range(callers)))
    return values
