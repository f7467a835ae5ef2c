"""What is measured, section by section."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

import numpy as np

from bench.embedder import load
from bench.embedder.raw import Raw
from bench.embedder.served import Served
from bench.embedder.texts import Corpus
from bench.figures import Figure, percentile
from memoryd.ports import Lane, TextKind

_QUERIES_A_SECOND = 5
_MS = 1000


async def bulk(served: Served, raw: Raw, corpus: Corpus, rounds: int, engine: str) -> list[Figure]:
    """Throughput over gRPC, in turn with the raw engine's, so that both see the same machine."""
    rates = []
    await load.bulk_rate(served.embedder, corpus.texts[:64])
    for _ in range(rounds):
        # Raw on both sides: what else the machine does changes while this runs.
        before = await asyncio.to_thread(raw.rate, corpus.texts)
        calls = await load.bulk_rate(served.embedder, corpus.texts)
        stream = await load.stream_rate(served.embedder, corpus.texts)
        after = await asyncio.to_thread(raw.rate, corpus.texts)
        rates.append(((before + after) / 2, calls, stream))
    name = f"{engine}, {corpus.name}"
    loop, calls, stream = (statistics.median(values) for values in zip(*rates, strict=True))
    by_calls = statistics.median(calls / loop for loop, calls, _ in rates)
    by_stream = statistics.median(stream / loop for loop, _, stream in rates)
    return [
        Figure(f"raw loop, {name}", loop, "tokens/s"),
        Figure(f"bulk in calls, {name}", calls, "tokens/s", "raw loop", by_calls, at_least=0.9),
        Figure(f"bulk in a stream, {name}", stream, "tokens/s", "raw loop", by_stream, at_least=0.9),
    ]


async def sketches(served: Served, corpus: Corpus, rounds: int) -> list[Figure]:
    """What token sketches from the same pass cost."""
    pairs = []
    for _ in range(rounds):
        before = await load.stream_rate(served.embedder, corpus.texts)
        sketched = await load.stream_rate(served.embedder, corpus.texts, sketches=True)
        after = await load.stream_rate(served.embedder, corpus.texts)
        pairs.append((sketched, (before + after) / 2))
    ratio = statistics.median(sketched / plain for sketched, plain in pairs)
    rate = statistics.median(sketched for sketched, _ in pairs)
    return [Figure("bulk with token sketches", rate, "tokens/s", "without", ratio, at_least=0.95)]


async def query(served: Served, raw: Raw, texts: Sequence[str]) -> list[Figure]:
    """A query at a time."""
    loops, calls = [], []
    for text in texts:
        loops.append(await asyncio.to_thread(raw.query, text) * _MS)
        calls.append(await load.query(served.embedder, text) * _MS)
    loop, grpc = statistics.median(loops), statistics.median(calls)
    return [
        Figure("query, raw engine, p50", loop, "ms"),
        Figure("query over gRPC, p50", grpc, "ms", "raw engine", grpc / loop),
        Figure("query over gRPC beyond raw, p50", grpc - loop, "ms", at_most=2.0),
    ]


async def mixed(served: Served, corpus: Corpus, texts: Sequence[str], seconds: float) -> list[Figure]:
    """Queries at a steady pace while bulk takes all that is left, between two spans of bulk alone."""
    times: list[float] = []
    async with load.saturated(served.embedder, corpus) as saturation:
        await asyncio.sleep(2)
        rates = []
        for with_queries in (False, True, False):
            saturation.reset()
            if with_queries:
                times = await _paced(served, texts, seconds)
            else:
                await asyncio.sleep(seconds / 2)
            rates.append(saturation.rate)
    alone = (rates[0] + rates[2]) / 2
    return [
        Figure("bulk alone, small calls", alone, "tokens/s"),
        Figure(
            f"bulk beside {_QUERIES_A_SECOND} queries/s", rates[1], "tokens/s", "alone", rates[1] / alone, at_least=0.8
        ),
        Figure("query under saturating bulk, p50", percentile(times, 0.5), "ms"),
        Figure("query under saturating bulk, p95", percentile(times, 0.95), "ms", at_most=30.0),
    ]


async def callers(served: Served, raw: Raw, corpus: Corpus, number: int) -> list[Figure]:
    """Many callers at once, each with one text a call."""
    loop = await asyncio.to_thread(raw.rate, corpus.texts)
    grpc = await load.bulk_rate(served.embedder, corpus.texts, callers=number, size=1)
    return [
        Figure("raw loop", loop, "tokens/s"),
        Figure(f"{number} callers of one text", grpc, "tokens/s", "raw loop", grpc / loop, at_least=0.85),
    ]


async def same(served: Served, raw: Raw, corpus: Corpus) -> list[Figure]:
    """The same text alone in one process and in a batch of another."""
    texts = corpus.texts[:200]
    together = await served.embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=600.0)
    alone = await asyncio.to_thread(lambda: np.stack([raw.alone(text) for text in texts]))
    return [
        Figure(
            "least cosine of a text alone and in a batch",
            float((together.vectors * alone).sum(1).min()),
            "cosine",
            at_least=0.9999,
        )
    ]


async def overload(served: Served, corpus: Corpus, seconds: float, factor: float) -> list[Figure]:
    """Calls at a multiple of what can be served, then at a pace that can."""
    size, patience = 16, 10.0
    before = await load.bulk_rate(served.embedder, corpus.texts)
    tokens = corpus.tokens / len(corpus.texts) * size
    outcomes, pause = load.Outcomes(), tokens / (before * factor)
    memory: list[float] = []
    async with asyncio.TaskGroup() as group:
        end, number = time.perf_counter() + seconds, 0
        began = time.perf_counter()
        while time.perf_counter() < end:
            first = number * size % max(len(corpus.texts) - size, 1)
            group.create_task(outcomes.call(served.embedder, corpus.texts[first : first + size], patience))
            number += 1
            memory.append(served.memory)
            await asyncio.sleep(max(0.0, began + number * pause - time.perf_counter()))
    after = await load.bulk_rate(served.embedder, corpus.texts)
    done, refused = outcomes.count("OK"), outcomes.count("RESOURCE_EXHAUSTED")
    middle = len(memory) // 2
    return [
        Figure("overload: calls", number, "calls"),
        Figure("overload: answered", done, "calls"),
        Figure("overload: refused, RESOURCE_EXHAUSTED", refused, "calls"),
        Figure("overload: ended otherwise", number - done - refused, "calls", at_most=0.0),
        Figure("overload: an answer, longest", max(outcomes.seconds.get("OK", [0.0])), "s", at_most=patience),
        Figure(
            "overload: a refusal, p95",
            percentile(outcomes.seconds.get("RESOURCE_EXHAUSTED", [0.0]), 0.95) * _MS,
            "ms",
        ),
        Figure(
            "overload: tokens answered", done * tokens / seconds, "tokens/s", "before", done * tokens / seconds / before
        ),
        Figure(
            "overload: memory, second half",
            max(memory[middle:]),
            "MiB",
            "first half",
            max(memory[middle:]) / max(memory[:middle]),
            at_most=1.05,
        ),
        Figure("after the overload", after, "tokens/s", "before", after / before, at_least=0.9),
    ]


async def _paced(served: Served, texts: Sequence[str], seconds: float) -> list[float]:
    """Send queries at their times, whether the earlier ones are answered or not; milliseconds of each."""
    tasks = []
    began = time.perf_counter()
    for number in range(int(seconds * _QUERIES_A_SECOND)):
        await asyncio.sleep(max(0.0, began + number / _QUERIES_A_SECOND - time.perf_counter()))
        tasks.append(asyncio.create_task(load.query(served.embedder, texts[number % len(texts)])))
    return [each * _MS for each in await asyncio.gather(*tasks)]
