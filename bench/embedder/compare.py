"""Others on the same texts with the same model: sentence-transformers' own loop, and another batching server."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from bench.embedder.texts import Corpus
from bench.figures import Figure
from memoryd.models.spec import E5_SMALL, Variant, default_folder

_START_WITHIN = 300.0
_TEXTS_A_REQUEST = 64
_REQUESTS = 4


async def run(corpus: Corpus, ours: float, infinity: Path | None) -> list[Figure]:
    """Measure them beside our own rate over gRPC, in tokens a second.

    `infinity` is the program `infinity_emb` of an environment of its own; None: it is left out. Both run the weights
    that `memoryd model prepare --variant torch` makes, in fp32.
    """
    prefixed = [f"{E5_SMALL.passage_prompt}{text}" for text in corpus.texts]
    figures = [Figure("memoryd over gRPC", ours, "tokens/s")]
    if (seconds := await asyncio.to_thread(_sentence_transformers, prefixed)) is not None:
        rate = corpus.tokens / seconds
        figures.append(Figure("sentence-transformers, encode()", rate, "tokens/s", "memoryd", rate / ours))
    if infinity is not None:
        try:
            seconds = await _infinity(infinity, prefixed)
        except (RuntimeError, TimeoutError, httpx.HTTPError) as error:  # the other figures must not go with it
            print(f"infinity-emb is left out: {error!r}", file=sys.stderr)
            return figures
        rate = corpus.tokens / seconds
        figures.append(Figure("infinity-emb over HTTP", rate, "tokens/s", "memoryd", rate / ours))
    return figures


def _sentence_transformers(texts: list[str]) -> float | None:
    """Embed texts with its own loop, on all cores; seconds, None where it is not installed."""
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (an extra)
    except ImportError:
        return None
    model = SentenceTransformer(str(default_folder(E5_SMALL, Variant.TORCH)), device="cpu")
    model.encode(texts[:8], show_progress_bar=False)
    began = time.perf_counter()
    model.encode(texts, show_progress_bar=False, normalize_embeddings=True)
    return time.perf_counter() - began


async def _infinity(program: Path, texts: list[str]) -> float:
    """Embed texts by its server in some requests at a time; seconds."""
    async with _serving(program) as client:
        parts = iter([texts[first : first + _TEXTS_A_REQUEST] for first in range(0, len(texts), _TEXTS_A_REQUEST)])

        async def ask(part: list[str]) -> None:
            response = await client.post("/embeddings", json={"model": "model", "input": part})
            response.raise_for_status()

        async def call() -> None:
            for part in parts:
                await ask(part)

        await ask(texts[:8])
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(_REQUESTS):
                group.create_task(call())
        return time.perf_counter() - began


@asynccontextmanager
async def _serving(program: Path) -> AsyncIterator[httpx.AsyncClient]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = default_folder(E5_SMALL, Variant.TORCH)
    options = ("--engine", "torch", "--device", "cpu", "--served-model-name", "model", "--no-bettertransformer")
    process = await asyncio.create_subprocess_exec(
        program, "v2", "--model-id", folder, "--host", "127.0.0.1", "--port", str(port), *options
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=_START_WITHIN) as client:
            async with asyncio.timeout(_START_WITHIN):
                while not await _answers(client):
                    if process.returncode is not None:
                        raise RuntimeError("infinity_emb ended early, see above")
                    await asyncio.sleep(0.5)
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health")).is_success
    except httpx.TransportError:
        return False
