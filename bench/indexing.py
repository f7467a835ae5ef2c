"""How fast a folder is indexed, beside the raw model on the same texts; and what memory it takes."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
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
        first = await raw(folder, 0)
        began = time.perf_counter()
        indexed, worked = await asyncio.to_thread(_index, folder, Path(temporary, "data"))
        seconds = time.perf_counter() - began
        model = first + await raw(folder, 1)
    rates = model.tokens / model.seconds, model.tokens / model.busy
    ours = model.tokens / seconds, model.tokens / worked
    return [
        Figure("tokens embedded", model.tokens, "tokens"),
        Figure("raw model, bulk", rates[0], "tokens/s"),
        Figure("indexing, start of the process included", ours[0], "tokens/s", "raw model, bulk", ours[0] / rates[0]),
        # On a machine that others use, too, wall times of one after the other say little.
        Figure("raw model, by processor time", rates[1], "tokens/s"),
        Figure("indexing, by processor time", ours[1], "tokens/s", "raw model", ours[1] / rates[1]),
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


@dataclass(frozen=True, slots=True)
class Raw:
    """What the model alone took for some tokens: seconds, and processor seconds of all its threads."""

    tokens: int
    seconds: float
    busy: float

    def __add__(self, other: Raw) -> Raw:
        """Sum up."""
        return Raw(self.tokens + other.tokens, self.seconds + other.seconds, self.busy + other.busy)


async def raw(folder: Path, half: int) -> Raw:
    """Embed every other chunk (`half`: 0 or 1) in one stream of the bulk lane, longest first, so that none is padded.

    One half is to be embedded before what it is compared with, and one after it: a machine's speed drifts by a tenth
    within minutes. The start of the model is not counted.
    """
    async with open_embedder(EmbedderSettings()) as embedder:
        tokenizer, window = await embedder.tokenizer(), (await embedder.info()).window
        texts = (await asyncio.to_thread(_texts, folder, tokenizer, window))[half::2]
        await embedder.embed(texts[:8], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=600.0)
        tokens, busy, began = 0, time.process_time(), time.perf_counter()
        async for part in embedder.embed_stream(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=600.0):
            tokens += part.tokens
        return Raw(tokens, time.perf_counter() - began, time.process_time() - busy)


def _texts(folder: Path, tokenizer: Tokenizer, window: int) -> list[str]:
    """The distinct embedding inputs of a folder, longest first."""
    texts: dict[str, None] = {}
    for path in sorted(folder.rglob("*.md")):
        text, limits = path.read_text(encoding="utf-8"), Limits(max_tokens=window)
        texts |= dict.fromkeys(
            piece.embedding_input for piece in chunk_markdown(text, count=tokenizer.count, limits=limits).pieces
        )
    return sorted(texts, key=len, reverse=True)
