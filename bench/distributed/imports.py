"""How fast the six processes import with made-up vectors, and which of them takes how much processor time for it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from bench.corpus import write_corpus
from bench.distributed.deployment import six_processes
from bench.distributed.processes import cpu
from bench.figures import Figure
from bench.indexing import raw
from memoryd.domain.names import Scope
from memoryd.evaluation.product import until_indexed

_SCOPE = Scope("bench", "notes")
_LEAST_RATE = 800.0  # chunks a second
_LEAST_SHARE = 0.85  # of the raw model's tokens a second


async def run(chunks: int, corpus: Path | None, *, embed: bool) -> list[Figure]:
    """Import about `chunks` chunks, or a folder of Markdown, into a deployment that is up already.

    `embed`: with the model, and then embed the same texts raw.
    """
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as temporary:
        root = Path(temporary)
        made, folder = root / "made" / "notes", root / "notes"
        if corpus is None:
            await asyncio.to_thread(write_corpus, made, chunks)
        else:
            await asyncio.to_thread(shutil.copytree, corpus, made)
        folder.mkdir()
        files = sum(1 for _ in made.rglob("*.md"))
        modules = {} if embed else {"embedder": "bench.distributed.made_up"}
        async with six_processes(root / "servers", modules) as six, six.workspaces({_SCOPE: folder}) as running:
            before, began = cpu(six, running), time.perf_counter()
            made.rename(folder / "imported")
            status = await until_indexed(running.client, _SCOPE.workspace, files, lambda *_: None)
            seconds = time.perf_counter() - began
            spent = {name: each - before[name] for name, each in cpu(six, running).items()}
        busy = time.process_time()
        tokens, raw_seconds = await raw(folder) if embed else (0, 1.0)
        busy = time.process_time() - busy
    rate, ours = status.chunks / seconds, sum(each for name, each in spent.items() if name not in six.servers)
    figures = [
        Figure("distributed: chunks", status.chunks, "chunks"),
        Figure("distributed: import", rate, "chunks/s", at_least=None if embed else _LEAST_RATE),
        Figure("distributed: import, by processor time of our processes", status.chunks / ours, "chunks/s"),
        *(
            Figure(f"distributed: processor time of {name}", each / status.chunks * 1000, "ms/chunk")
            for name, each in spent.items()
        ),
    ]
    if embed:
        wall, cost = raw_seconds / seconds, busy / sum(spent.values())
        figures += [
            Figure("raw model, bulk", tokens / raw_seconds, "tokens/s"),
            Figure("distributed: import", tokens / seconds, "tokens/s", "raw model, bulk", wall, at_least=_LEAST_SHARE),
            # On a machine that others use, too, wall times of one after the other say little.
            Figure("raw model, start included, by processor time", tokens / busy, "tokens/s"),
            Figure("all processes, by processor time", tokens / sum(spent.values()), "tokens/s", "raw model", cost),
        ]
    return figures
