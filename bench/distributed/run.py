"""All figures of the six processes, in one run of them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bench import saves
from bench.corpus import write_corpus
from bench.distributed import hops, processes
from bench.distributed.deployment import six_processes
from bench.figures import Figure
from memoryd.domain.names import Scope
from memoryd.evaluation.product import until_indexed

_SCOPE = Scope("bench", "notes")


async def run(chunks: int, rounds: int, saved: int, *, embed: bool) -> list[Figure]:
    """Search, save, and look at the processes.

    Args:
        chunks: about so many are in the index.
        rounds: searches that are timed.
        saved: files that are saved and waited for.
        embed: embed the whole corpus with the model, which takes minutes, and not just its headings.
    """
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as temporary:
        root, folder = Path(temporary), Path(temporary, "notes")
        files = _write(folder, chunks)
        modules = {} if embed else {"embedder": "bench.distributed.embedder"}
        async with six_processes(root, modules) as six, six.workspaces({_SCOPE: folder}) as running:
            status = await until_indexed(running.client, _SCOPE.workspace, files, lambda *_: None)
            found = await hops.measure(six, running.client, _SCOPE, rounds)
            written = await saves.measure(running.client, folder, saved)
            memory = processes.memory(six, running)
            started = await asyncio.to_thread(processes.starts, six, running)
        held = Figure("chunks in the index", status.chunks, "chunks")
        return [held, *found.parts, *memory, *started, *written, *found.whole]


def _write(folder: Path, chunks: int) -> int:
    """Write the corpus; the number of its files."""
    write_corpus(folder, chunks)
    return sum(1 for _ in folder.glob("*.md"))
