"""How standalone grows: importing, memory, searching and starting at several sizes, with made-up passage vectors."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.corpus import write_corpus
from bench.figures import Figure, percentile
from bench.processes import anonymous, resident
from bench.search import measure, serving
from bench.server import INDEXED
from memoryd.adapters.embedded.datadir import bytes_on_disk

_LEAST_RATE = 1_500.0  # chunks a second
_LARGE = 200_000
_LONGEST_SEARCH = 30.0  # ms beyond the embedding, up to a large index


async def run(sizes: Sequence[int], rounds: int) -> list[Figure]:
    """Measure each size, smallest first."""
    figures: list[Figure] = []
    before: tuple[int, float] | None = None
    for size in sorted(sizes):
        with tempfile.TemporaryDirectory() as temporary:
            folder, data = Path(temporary, "notes"), Path(temporary, "data")
            write_corpus(folder, size)
            async with serving(folder, data) as (client, process):
                chunks = (await client.status()).workspaces[0].chunks
                seconds, worked = json.loads((data / INDEXED).read_text())
                peak = resident(process, peak=True)
            began = time.perf_counter()
            async with serving(folder, data):
                first = time.perf_counter() - began
            began = time.perf_counter()
            async with serving(folder, data) as (client, process):
                started = time.perf_counter() - began
                measured = await measure(client, rounds)
                memory, own = resident(process), anonymous(process)
                spent = json.loads((data / INDEXED).read_text())[1]
            disk = bytes_on_disk(data)
        figures += [
            Figure(f"{size}: chunks", chunks, "chunks"),
            Figure(f"{size}: import", chunks / seconds, "chunks/s"),
            Figure(f"{size}: import, by processor time", chunks / worked, "chunks/s", at_least=_LEAST_RATE),
            Figure(f"{size}: peak memory of the import", peak, "MiB"),
            Figure(f"{size}: memory after a restart and {rounds} searches", memory, "MiB"),
            Figure(f"{size}: of that not backed by files", own, "MiB"),
            Figure(f"{size}: on disk", disk / chunks / 1024, "KiB/chunk"),
            Figure(f"{size}: first start after the import, compaction included", first, "s"),
            Figure(f"{size}: start to serving, model and folder scan included", started, "s"),
            Figure(f"{size}: processor time of that, without the model", spent, "s"),
            Figure(f"{size}: search beyond the embedding, p50", percentile(measured.beyond, 0.5), "ms"),
            Figure(f"{size}: search without rerank beyond the embedding, p50", measured.fused_beyond, "ms"),
            Figure(
                f"{size}: search beyond the embedding, p95",
                percentile(measured.beyond, 0.95),
                "ms",
                at_most=_LONGEST_SEARCH if size <= _LARGE else None,
            ),
        ]
        if before is not None:
            more = (own - before[1]) / (chunks - before[0]) * 1024
            figures.append(Figure(f"{size}: memory a chunk, not backed by files", more, "KiB"))
        before = chunks, own
    return figures
