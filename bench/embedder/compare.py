"""Others on the same texts with the same model: sentence-transformers' own loop, and another batching server."""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from bench.embedder import load
from bench.embedder.served import Served, serving
from bench.embedder.texts import Corpus
from bench.figures import Figure
from memoryd.models.spec import E5_SMALL, Variant, default_folder

HOW = (
    "uv venv infinity; VIRTUAL_ENV=infinity uv pip install 'infinity-emb[server,torch]==0.0.77' 'transformers<4.49' "
    "'optimum<1.25' 'sentence-transformers<4' 'torch<2.9' 'typer<0.16' 'click<8.2' protobuf sentencepiece; then "
    "--infinity infinity/bin/infinity_emb"
)
_START_WITHIN = 300.0
_TEXTS_A_REQUEST = 64
_REQUESTS = 4

_Run = Callable[[], Awaitable[None]]


async def run(corpus: Corpus, served: Served, infinity: Path | None, rounds: int) -> list[Figure]:
    """Measure all in turn, in tokens a second, each over its own protocol.

    `infinity` is the program `infinity_emb` of an environment of its own; without it that row is left out, and said so.
    The others than int8 run fp32.
    """
    texts = [f"{E5_SMALL.passage_prompt}{text}" for text in corpus.texts]
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(serving({"MEMORYD_EMBEDDER_VARIANT": Variant.FP32}))
        runs: dict[str, _Run] = {
            "memoryd over gRPC, fp32": lambda: _ours(ours, corpus),
            "memoryd over gRPC, int8": lambda: _ours(served, corpus),
        }
        if (encode := await asyncio.to_thread(_sentence_transformers, texts)) is not None:
            runs["sentence-transformers, encode(), fp32"] = lambda: asyncio.to_thread(encode)
        if infinity is None:
            print(f"no other batching server to compare with; to have one: {HOW}", file=sys.stderr)
        else:
            try:
                client = await stack.enter_async_context(_serving(infinity))
                runs["infinity-emb over HTTP, fp32"] = lambda: _infinity(client, texts)
                await _infinity(client, texts[:8])
            except (OSError, RuntimeError, TimeoutError, httpx.HTTPError) as error:  # the others must not go with it
                print(f"infinity-emb is left out: {error!r}; it is known to run so: {HOW}", file=sys.stderr)
                runs.pop("infinity-emb over HTTP, fp32", None)
        rates: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, work in runs.items():
                began = time.perf_counter()
                await work()
                rates[name].append(corpus.tokens / (time.perf_counter() - began))
    return [_figure(name, rates) for name in rates]


def _figure(name: str, rates: dict[str, list[float]]) -> Figure:
    """Compare with ours of the same rounds and precision."""
    first, *_ = rates.values()
    ratio = statistics.median(rate / ours for rate, ours in zip(rates[name], first, strict=True))
    rate = statistics.median(rates[name])
    if rates[name] is first:
        return Figure(name, rate, "tokens/s")
    return Figure(name, rate, "tokens/s", "memoryd, fp32", ratio)


async def _ours(served: Served, corpus: Corpus) -> None:
    await load.bulk_rate(served.embedder, corpus.texts, callers=_REQUESTS, size=_TEXTS_A_REQUEST)


def _sentence_transformers(texts: list[str]) -> Callable[[], None] | None:
    """Give what embeds texts with its own loop, on all cores; None where it is not installed."""
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (an extra)
    except ImportError:
        print("sentence-transformers is left out: it is not installed (TORCH=1 make setup-dev)", file=sys.stderr)
        return None
    model = SentenceTransformer(str(default_folder(E5_SMALL, Variant.TORCH)), device="cpu")
    model.encode(texts[:8], show_progress_bar=False)

    def encode() -> None:
        model.encode(texts, show_progress_bar=False, normalize_embeddings=True)

    return encode


async def _infinity(client: httpx.AsyncClient, texts: list[str]) -> None:
    """Embed texts by its server in some requests at a time."""
    parts = iter([texts[first : first + _TEXTS_A_REQUEST] for first in range(0, len(texts), _TEXTS_A_REQUEST)])

    async def call() -> None:
        for part in parts:
            (await client.post("/embeddings", json={"model": "model", "input": part})).raise_for_status()

    async with asyncio.TaskGroup() as group:
        for _ in range(_REQUESTS):
            group.create_task(call())


@asynccontextmanager
async def _serving(program: Path) -> AsyncIterator[httpx.AsyncClient]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = default_folder(E5_SMALL, Variant.TORCH)
    options = ["--engine", "torch", "--device", "cpu", "--served-model-name", "model"]
    options += ["--no-bettertransformer", "--no-model-warmup"]  # that of 32 texts of 512 tokens takes a minute here
    quiet = {"DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0", "HF_HUB_OFFLINE": "1"}
    # In the model's folder: its version of transformers looks for a relative tokenizer_file there.
    process = await asyncio.create_subprocess_exec(
        program,
        *("v2", "--model-id", str(folder), "--host", "127.0.0.1", "--port", str(port), *options),
        cwd=folder,
        env=os.environ | quiet,
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
