"""Where the time of a search goes: each hop and stage, from the processes' own log lines, and each engine alone."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from bench.distributed.deployment import Six
from bench.figures import Figure, percentile
from bench.search import queries_of
from memoryd.adapters.distributed import EngineSettings, open_engines
from memoryd.client import MemorydClient, SearchReply
from memoryd.domain.names import Scope
from memoryd.domain.text import analyze_query, term_weights
from memoryd.generations.parts import Parts
from memoryd.ports import Embedder, FileLog, Filter, Lane, QueryTerm, TextKind
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings

_WARM_UP = 300  # Java compiles what it runs often
# After so many searches nearly all chunks that queries find are kept, as in a service that runs for an hour. After 600
# every third leg still met one that was not, and read it.
_KNOWN = 2_000
_LOGGED = 0.5  # seconds after an answer in which its log line is written
_DEPTH = 60  # as the search service asks each leg
_ALONE = "query embedding alone, p50"
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Hops:
    """The table of hops and stages, and what is said of the whole."""

    parts: list[Figure]
    whole: list[Figure]


async def measure(six: Six, client: MemorydClient, scope: Scope, rounds: int) -> Hops:
    """Search `rounds` times; between the searches ask each engine alone, so that all see the same machine."""
    queries = queries_of(2 * (rounds + _WARM_UP) + _KNOWN)
    known, queries = queries[:_KNOWN], queries[_KNOWN:]
    pairs = list(zip(queries[::2], queries[1::2], strict=True))
    async with AsyncExitStack() as stack:
        parts, log = await _engines(six, stack)
        model = await stack.enter_async_context(open_embedder(EmbedderSettings()))
        for query in known:
            await client.search(query, min_score=0.0)
        for pair in pairs[:_WARM_UP]:
            await _round(pair, client, model, parts, log, scope, defaultdict(list))
        await asyncio.sleep(_LOGGED)
        before = {name: len(_calls(six, name)) for name in ("gateway", "search", "embedder")}
        times: Times = defaultdict(list)
        for pair in pairs[_WARM_UP:]:
            await _round(pair, client, model, parts, log, scope, times)
        await asyncio.sleep(_LOGGED)
        lines = {name: _calls(six, name)[count:] for name, count in before.items()}
    _add_hops(times, lines)
    return _figures(times)


async def _round(
    pair: tuple[str, str],
    client: MemorydClient,
    model: Embedder,
    parts: Parts,
    log: FileLog,
    scope: Scope,
    times: Times,
) -> None:
    query, other = pair

    async def timed(name: str, call: Callable[[], Awaitable[object]]) -> object:
        began = time.perf_counter()
        result = await call()
        times[name].append((time.perf_counter() - began) * 1000)
        return result

    async def searched(name: str, text: str, **options: Any) -> SearchReply:  # noqa: ANN401  (passed on)
        began = time.perf_counter()
        reply = await client.search(text, min_score=0.0, **options)
        times[name].append((time.perf_counter() - began) * 1000)
        return reply

    reply = await searched("search", query)
    await searched("search without sketches", other, rerank="off")
    for stage, milliseconds in reply.timings.items():
        times[f"stage {stage}"].append(milliseconds)

    embeddings = await model.embed([query], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
    vector, where = embeddings.vectors[0], Filter(scope)
    terms = [QueryTerm(term, weight) for term, weight in term_weights(analyze_query(query)).items()]
    embed = {"kind": TextKind.QUERY, "lane": Lane.QUERY, "timeout": 10.0}
    await timed("embedding", lambda: model.embed([f"{query}."], **embed))  # type: ignore[arg-type]  # the same options
    await timed("embedder", lambda: parts.embedder.embed([f"{query}?"], **embed))  # type: ignore[arg-type]  # as above
    await timed("Qdrant", lambda: parts.vectors.nearest(vector, where, _DEPTH, []))
    await timed("OpenSearch", lambda: parts.texts.search(terms, where, _DEPTH))
    await timed("NATS view", lambda: parts.manifest.view(scope))
    await timed("NATS pending", lambda: log.pending(parts.consumer, scope))


def _add_hops(times: Times, lines: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Join the log lines of the processes by their request."""
    inner = {name: {line["request_id"]: line for line in lines[name]} for name in ("search", "embedder")}
    gateway = [line for line in lines["gateway"] if str(line["method"]).endswith("/MemorySearch")]
    for total, line in zip(times["search"], gateway[::2], strict=True):  # every other one is without sketches
        outer = _ms(line)
        within = _ms(inner["search"][line["request_id"]])
        times["caller to gateway"].append(total - outer)
        times["gateway to search"].append(outer - within)
        times["search process"].append(within)
        if (embedded := inner["embedder"].get(line["request_id"])) is not None:
            times["embedder process"].append(_ms(embedded))


def _ms(line: Mapping[str, object]) -> float:
    return float(str(line["ms"]))


def _calls(six: Six, name: str) -> list[dict[str, object]]:
    """Read the lines of calls in a process's log."""
    (log,) = six.cluster.logs(name)
    entries = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return [entry for entry in entries if entry.get("event") == "call"]


def _figures(times: Times) -> Hops:
    p50 = {name: statistics.median(values) for name, values in times.items()}
    alone, total, plain = p50["embedding"], p50["search"], p50["search without sketches"]
    stages = [name for name in p50 if name.startswith("stage ")]
    # Both legs run side by side, embedding before the vector leg; the rest of the process is NATS and its own work.
    vector_leg = p50.get("stage embed", 0.0) + p50.get("stage vector", 0.0)
    legs = max(vector_leg, p50.get("stage text", 0.0))
    later = sum(p50[name] for name in stages if name not in {"stage embed", "stage vector", "stage text"})
    rows = [
        ("hop: caller to gateway and back, p50", p50["caller to gateway"]),
        ("hop: gateway, and to search and back, p50", p50["gateway to search"]),
        ("search process, p50", p50["search process"]),
        *((f"  {name}, p50", p50[name]) for name in stages),
        ("  beside the stages (two round trips to NATS), p50", p50["search process"] - legs - later),
        ("embedder process, within stage embed, p50", p50.get("embedder process", 0.0)),
        ("embedder alone, over gRPC, p50", p50["embedder"]),
        ("Qdrant's wire alone (test server), ids, p50", p50["Qdrant"]),
        ("OpenSearch alone, p50", p50["OpenSearch"]),
        ("NATS alone, view of the outlines, p50", p50["NATS view"]),
        ("NATS alone, pending changes, p50", p50["NATS pending"]),
    ]
    return Hops(
        [Figure(name, value, "ms", _ALONE, value / alone) for name, value in rows],
        [
            Figure(_ALONE, alone, "ms"),
            Figure("search over the gateway, p95", percentile(times["search"], 0.95), "ms"),
            Figure("search over the gateway, p50", total, "ms", _ALONE, total / alone),
            Figure(
                "search over the gateway without sketches, p95",
                percentile(times["search without sketches"], 0.95),
                "ms",
            ),
            Figure("search without sketches, p50", plain, "ms", _ALONE, plain / alone),
            Figure("search over the gateway beyond the embedding, p50", total - alone, "ms", at_most=30.0),
            Figure("search without sketches beyond the embedding, p50", plain - alone, "ms", at_most=15.0),
            Figure("search without sketches beyond the embedder's answer, p50", plain - p50["embedder"], "ms"),
        ],
    )


async def _engines(six: Six, stack: AsyncExitStack) -> tuple[Parts, FileLog]:
    """Open the engines as the search process does."""
    with patch.dict("os.environ", six.cluster.environment(), clear=True):
        settings = EngineSettings()
        server = Server(ServerSettings(address="127.0.0.1:0"))
    engines = await open_engines(settings, "bench", server, stack, consumer="indexer")
    return await engines.open_current(stack), engines.log
