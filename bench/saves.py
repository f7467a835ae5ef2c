"""How long a small file takes from its saving to a search that finds it."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

from bench.figures import Figure, percentile
from memoryd.client import MemorydClient

_POLL = 0.005  # seconds between two searches
_WITHIN = 30.0
_WARM_UP = 3


async def measure(
    client: MemorydClient, folder: Path, rounds: int, *, during: str = "", at_most: float = 1000.0
) -> list[Figure]:
    """Save a new file, then save it again with another text; each time until a search finds the text.

    Args:
        client: of the server that serves the folder.
        folder: where the file is saved.
        rounds: how many saves are timed.
        during: what else is going on, for the figures' names.
        at_most: milliseconds that are wanted at the 95th percentile.
    """
    times = []
    for number in range(rounds + _WARM_UP):
        note = folder / f"saved-{number // 2}.md"
        word = f"zyx{number}qv"
        text = f"# A note\n\nThe ferry {word} leaves the northern pier at noon, and nobody has asked why.\n"
        began = time.perf_counter()
        new = note.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(note)
        await _found(client, word, note.name)
        times.append((time.perf_counter() - began) * 1000)
    measured = times[_WARM_UP:]
    return [
        Figure(f"save to searchable, small file{during}, p50", statistics.median(measured), "ms"),
        Figure(f"save to searchable, small file{during}, p95", percentile(measured, 0.95), "ms", at_most=at_most),
    ]


async def _found(client: MemorydClient, word: str, path: str) -> None:
    async with asyncio.timeout(_WITHIN):
        while True:
            reply = await client.search(word, mode="text", max_results=1, min_score=0.0)
            if [result.path for result in reply.results] == [path]:
                return
            await asyncio.sleep(_POLL)
