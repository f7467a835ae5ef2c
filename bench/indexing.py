"""How fast a folder is indexed, beside the raw model on the same texts; and what memory it takes."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.corpus import write_corpus
from bench.figures import Figure
from memoryd.domain.chunking import Limits, chunk_markdown
from memoryd.ports import Lane, TextKind, Tokenizer
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings


async def run(sections: int, corpus: Path | None) -> list[Figure]:
    """Index a folder of Markdown (default: a made-up one) in a process of its own, then embed its chunks raw."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = corpus or Path(temporary, "notes")
        if corpus is None:
            write_corpus(folder, sections)
        began = time.perf_counter()
        indexed, worked = await asyncio.to_thread(_index, folder, Path(temporary, "data"))
        seconds = time.perf_counter() - began
        busy = time.process_time()
        tokens, raw_seconds = await raw(folder)
        busy = time.process_time() - busy
    index_rate, raw_rate = tokens / seconds, tokens / raw_seconds
    return [
        Figure("tokens embedded", tokens, "tokens"),
        Figure("raw model, bulk", raw_rate, "tokens/s"),
        Figure(
            "indexing, start of the process included", index_rate, "tokens/s", "raw model, bulk", index_rate / raw_rate
        ),
        # On a machine that others use, too, wall times of one after the other say little.
        Figure("raw model, start included, by processor time", tokens / busy, "tokens/s"),
        Figure(
            "indexing, by processor time",
            tokens / worked,
            "tokens/s",
            "raw model, by processor time",
            busy / worked,
        ),
        Figure("peak memory of indexing", indexed, "MiB"),
    ]


def _index(folder: Path, data: Path) -> tuple[float, float]:
    """Run `memoryd index`; its peak memory in MiB, and its processor time in seconds."""
    memoryd = Path(sys.executable).with_name("memoryd")
    subprocess.run(
        [memoryd, "index", folder, "--data-dir", data], check=True, stdout=subprocess.DEVNULL, env=os.environ | {}
    )
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


async def raw(folder: Path) -> tuple[int, float]:
    """Embed all chunks in one call after another of the bulk lane, longest first; tokens and seconds."""
    async with open_embedder(EmbedderSettings()) as embedder:
        tokenizer, window = await embedder.tokenizer(), (await embedder.info()).window
        texts = await asyncio.to_thread(_texts, folder, tokenizer, window)
        await embedder.embed(texts[:8], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=600.0)
        began, tokens = time.perf_counter(), 0
        for first in range(0, len(texts), 64):
            batch = texts[first : first + 64]
            tokens += (await embedder.embed(batch, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=600.0)).tokens
        return tokens, time.perf_counter() - began


def _texts(folder: Path, tokenizer: Tokenizer, window: int) -> list[str]:
    """The distinct embedding inputs of a folder, longest first."""
    texts: dict[str, None] = {}
    for path in sorted(folder.rglob("*.md")):
        text, limits = path.read_text(encoding="utf-8"), Limits(max_tokens=window)
        texts |= dict.fromkeys(
            piece.embedding_input for piece in chunk_markdown(text, count=tokenizer.count, limits=limits).pieces
        )
    return sorted(texts, key=len, reverse=True)
