"""How long a warm search takes over gRPC, beside embedding the query alone."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import saves
from bench.corpus import EXAMPLE, write_corpus
from bench.figures import Figure, percentile
from memoryd.client import MemorydClient
from memoryd.endpoint import read_endpoint
from memoryd.ports import Lane, TextKind
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings

_START_WITHIN = 1800.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Times in milliseconds: embedding the query alone, the whole search over gRPC, without rerank too, its stages."""

    alone: list[float]
    searches: list[float]
    fused: list[float]
    stages: dict[str, list[float]]

    @property
    def beyond(self) -> list[float]:
        """What each search took beyond the median of embedding its query."""
        base = statistics.median(self.alone)
        return [search - base for search in self.searches]

    @property
    def fused_beyond(self) -> float:
        """What the median search without rerank took beyond that."""
        return statistics.median(self.fused) - statistics.median(self.alone)


async def run(chunks: int, rounds: int, saved: int) -> list[Figure]:
    """Measure `rounds` different queries on an index of about `chunks` chunks, then save `saved` files."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, data = Path(temporary, "notes"), Path(temporary, "data")
        write_corpus(folder, chunks)
        async with serving(folder, data) as (client, _):
            held = (await client.status()).workspaces[0].chunks
            measured = await measure(client, rounds)
            written = await saves.measure(client, folder, saved)
    p50, base = statistics.median(measured.searches), statistics.median(measured.alone)
    fused = statistics.median(measured.fused)
    return [
        Figure("chunks in the index", held, "chunks"),
        Figure("query embedding alone, p50", base, "ms"),
        Figure("search over gRPC, p50", p50, "ms", "query embedding alone, p50", p50 / base),
        Figure("search over gRPC, p95", percentile(measured.searches, 0.95), "ms"),
        Figure("search over gRPC without rerank, p50", fused, "ms", "search over gRPC, p50", fused / p50),
        Figure("search beyond the embedding, p50", p50 - base, "ms"),
        *(Figure(f"stage {stage}, p50", statistics.median(values), "ms") for stage, values in measured.stages.items()),
        *written,
    ]


async def measure(client: MemorydClient, rounds: int) -> Measured:
    """Search with `rounds` different queries, and embed each alone."""
    queries = queries_of(rounds)
    measured = Measured([], [], [], defaultdict(list))
    async with open_embedder(EmbedderSettings()) as embedder:
        for query in queries[:20]:
            await client.search(query)
            await embedder.embed([query], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
        for query in queries:
            # In turn, so that both see the same machine.
            began = time.perf_counter()
            await embedder.embed([query], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
            measured.alone.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            reply = await client.search(query, min_score=0.0)
            measured.searches.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            # Another text, so that neither search finds its query's embedding kept.
            await client.search(f"{query}?", min_score=0.0, rerank="off")
            measured.fused.append((time.perf_counter() - began) * 1000)
            for stage, milliseconds in reply.timings.items():
                measured.stages[stage].append(milliseconds)
    return measured


@asynccontextmanager
async def serving(folder: Path, data: Path, *options: str) -> AsyncIterator[tuple[MemorydClient, int]]:
    """Run `bench.server` until the context ends; a client, and the process's id. See there for the options."""
    (data / "endpoint.json").unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.server", folder, data, *options)
    try:
        async with asyncio.timeout(_START_WITHIN):
            while (endpoint := read_endpoint(data)) is None:
                if process.returncode is not None:
                    raise RuntimeError("the server ended early, see above")
                await asyncio.sleep(0.02)
        async with MemorydClient(endpoint.address, endpoint.key, timeout=30.0) as client:
            yield client, process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def queries_of(count: int) -> list[str]:
    """Give `count` different natural sentences, so that nothing is answered from a cache."""
    lines = [
        line.strip("-# ")
        for path in sorted(EXAMPLE.rglob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if 4 <= len(line.split()) <= 12  # noqa: PLR2004  (as long as a question)
    ]
    return [f"{lines[n % len(lines)]} {n // len(lines) or ''}".strip() for n in range(count)]
