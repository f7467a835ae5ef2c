"""How fast the six processes import with made-up vectors, and which of them takes how much processor time for it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from bench.corpus import write_corpus
from bench.distributed.deployment import Workspaces, six_processes
from bench.distributed.processes import cpu
from bench.figures import Figure
from bench.indexing import Raw, raw
from memoryd.domain.names import Scope
from memoryd.evaluation.product import until_indexed

_SCOPE = Scope("bench", "notes")
_LEAST_RATE = 800.0  # chunks a second
_LEAST_SHARE = 0.85  # of the raw model's tokens a second
# Chunks that are imported first: a deployment is up long before, and OpenSearch compiles itself for its first minutes.
_WARM_UP = 500
# Few files at once would count as edits, which have small groups, so that later ones wait less.
_ALL_IN_BULK = {"MEMORYD_WORKSPACE_LIVE_LIMIT": "0"}


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
        await asyncio.to_thread(write_corpus, folder / "before", _WARM_UP, seed=8)
        modules = {} if embed else {"embedder": "bench.distributed.made_up"}
        model = await raw(made, 0) if embed else Raw(0, 1.0, 1.0)
        async with (
            six_processes(root / "servers", modules, more=_ALL_IN_BULK) as six,
            six.workspaces({_SCOPE: folder}) as running,
        ):
            warm = await _indexed(running, folder)
            before, began = cpu(six, running), time.perf_counter()
            made.rename(folder / "imported")
            chunks = await _indexed(running, folder) - warm
            seconds = time.perf_counter() - began
            spent = {name: each - before[name] for name, each in cpu(six, running).items()}
        if embed:
            model += await raw(folder / "imported", 1)
    rate, ours = chunks / seconds, sum(each for name, each in spent.items() if name not in six.servers)
    figures = [
        Figure("distributed: chunks", chunks, "chunks"),
        Figure("distributed: import", rate, "chunks/s", at_least=None if embed else _LEAST_RATE),
        Figure("distributed: import, by processor time of our processes", chunks / ours, "chunks/s"),
        *(
            Figure(f"distributed: processor time of {name}", each / chunks * 1000, "ms/chunk")
            for name, each in spent.items()
        ),
    ]
    if embed:
        rates = model.tokens / model.seconds, model.tokens / model.busy
        here = model.tokens / seconds, model.tokens / ours, model.tokens / sum(spent.values())
        shares = here[0] / rates[0], here[1] / rates[1], here[2] / rates[1]
        figures += [
            Figure("raw model, bulk", rates[0], "tokens/s"),
            Figure("distributed: import", here[0], "tokens/s", "raw model, bulk", shares[0], at_least=_LEAST_SHARE),
            # On a machine that others use, too, wall times of one after the other say little.
            Figure("raw model, by processor time", rates[1], "tokens/s"),
            Figure("distributed: our processes, by processor time", here[1], "tokens/s", "raw model", shares[1]),
            Figure("distributed: with the servers, by processor time", here[2], "tokens/s", "raw model", shares[2]),
        ]
    return figures


async def _indexed(running: Workspaces, folder: Path) -> int:
    """Wait until all files of the folder are indexed; how many chunks they have."""
    files = await asyncio.to_thread(lambda: sum(1 for _ in folder.rglob("*.md")))
    return (await until_indexed(running.client, _SCOPE.workspace, files, lambda *_: None)).chunks
