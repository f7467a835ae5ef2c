"""What memory one large file takes, beside the same text in many small files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.backlog.queue import SCOPE
from bench.corpus import write_corpus
from bench.distributed.deployment import six_processes
from bench.distributed.processes import peaks
from bench.figures import Figure
from bench.processes import resident
from bench.search import serving
from memoryd.client import MemorydClient
from memoryd.evaluation.product import until_indexed

_BYTES_A_SECTION = 300  # at least
_MOST = 2.0  # times the memory with small files


async def large_file(mebibytes: int) -> list[Figure]:
    """Index one file of so many MiB, and the same text in small files, in both shapes."""
    figures = []
    for shape, measure in (("standalone", _standalone), ("distributed", _distributed)):
        with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as temporary:
            small, large = Path(temporary, "small"), Path(temporary, "large")
            _write(small, large, mebibytes << 20)
            chunks, beside = await measure(small, Path(temporary, "one"))
            found, peak = await measure(large, Path(temporary, "two"))
        figures += [
            Figure(f"{shape}: chunks of small files", chunks, "chunks"),
            Figure(f"{shape}: chunks of one file of {mebibytes} MiB", found, "chunks", at_least=1),
        ]
        for name, value in peak.items():
            figures.append(Figure(f"{shape}: peak memory of {name}, small files", beside[name], "MiB"))
            ratio = value / beside[name]
            figures.append(
                Figure(f"{shape}: the same, one file", value, "MiB", "with small files", ratio, at_most=_MOST)
            )
    return figures


def _write(small: Path, large: Path, size: int) -> None:
    """Write small files, and their text, up to `size` bytes, in one file."""
    write_corpus(small, size // _BYTES_A_SECTION)
    text, files = bytearray(), iter(sorted(small.glob("*.md")))
    for file in files:
        more = file.read_bytes()
        if len(text) + len(more) > size:
            file.unlink()
            break
        text += more
    for file in files:
        file.unlink()
    large.mkdir()
    (large / "large.md").write_bytes(text)


async def _standalone(folder: Path, root: Path) -> tuple[int, Mapping[str, float]]:
    async with serving(folder, root) as (client, process):
        return await _chunks(client), {"the process": resident(process, peak=True)}


async def _distributed(folder: Path, root: Path) -> tuple[int, Mapping[str, float]]:
    modules = {"embedder": "bench.distributed.made_up"}
    async with six_processes(root, modules) as six, six.workspaces({SCOPE: folder}) as running:
        files = len(os.listdir(folder))  # noqa: PTH208  (a folder of our own)
        await until_indexed(running.client, SCOPE.workspace, files, lambda *_: None)
        found = {**peaks(six), "workspace": resident(running.process.pid or 0, peak=True)}
        return await _chunks(running.client), {name: found[name] for name in ("indexer", "workspace")}


async def _chunks(client: MemorydClient) -> int:
    return (await client.status()).workspaces[0].chunks
