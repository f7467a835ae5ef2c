"""How long a small file takes from its saving to a search that finds it, while an import runs, in both shapes."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bench import saves
from bench.corpus import write_corpus
from bench.distributed.deployment import six_processes
from bench.figures import Figure
from bench.search import serving
from memoryd.client import MemorydClient
from memoryd.domain.names import Scope

_SCOPE = Scope("bench", "notes")
_IMPORTING = 20  # files pending
_BEGUN_WITHIN = 120.0
_LONGEST = 3_000.0  # ms


async def run(chunks: int, saved: int) -> list[Figure]:
    """Import about `chunks` chunks with the model, and save `saved` files meanwhile."""
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as temporary:
        root = Path(temporary)
        folders = [root / name / "notes" for name in ("standalone", "distributed")]
        for folder in folders:
            folder.mkdir(parents=True)
        async with serving(folders[0], root / "data", "--real") as (client, _):
            figures = await _measure(client, folders[0], chunks, saved, "standalone")
        async with six_processes(root / "servers") as six, six.workspaces({_SCOPE: folders[1]}) as running:
            return figures + await _measure(running.client, folders[1], chunks, saved, "distributed")


async def _measure(client: MemorydClient, folder: Path, chunks: int, saved: int, shape: str) -> list[Figure]:
    await asyncio.to_thread(write_corpus, folder, chunks)
    async with asyncio.timeout(_BEGUN_WITHIN):
        while await _pending(client) < _IMPORTING:  # noqa: ASYNC110  (asks another process)
            await asyncio.sleep(0.05)
    figures = await saves.measure(client, folder, saved, during=f" during an import, {shape}", at_most=_LONGEST)
    left = Figure(f"files still to be imported after that, {shape}", await _pending(client), "files", at_least=1)
    return [*figures, left]


async def _pending(client: MemorydClient) -> int:
    return (await client.status()).workspaces[0].pending
