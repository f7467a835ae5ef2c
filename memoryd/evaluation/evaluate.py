"""Evaluating sets one after another, each on a server that holds its documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

import structlog

from memoryd.client import MemorydClient
from memoryd.domain.queries import Mode, Rerank
from memoryd.evaluation import probes
from memoryd.evaluation.product import ServedProduct
from memoryd.evaluation.report import ModeReport, report
from memoryd.evaluation.run import run_set
from memoryd.evaluation.sets import RetrievalSet

_log = structlog.get_logger(__name__)

# Gives a client of a server that holds a set's documents, or will soon.
Serving = Callable[[RetrievalSet], AbstractAsyncContextManager[MemorydClient]]
Reports = Mapping[str, Mapping[Mode, ModeReport]]


async def evaluate(
    sets: Sequence[RetrievalSet],
    serving: Serving,
    modes: Collection[Mode],
    progress: Callable[[str, int, int], None],
    *,
    workspace: str = "",
    concurrency: int = 1,
    rerank: Rerank = Rerank.AUTO,
) -> Reports:
    """Run every query of every set in each mode, and queries without an answer; reports by set and mode."""
    reports = {}
    for data in sets:
        async with serving(data) as client:
            product = replace(await ServedProduct.find(client, data, workspace), rerank=rerank)
            for status in await product.indexed(data, progress):
                for file in status.quarantined:  # it counts as never found
                    _log.warning("document set aside", set=data.name, path=file.path, reason=file.reason)
            run = partial(run_set, product, data, modes, progress, concurrency=concurrency)
            outcomes = await run()
            foreign = await run(queries=probes.foreign(data, sets), what="search for other sets' queries")
            gibberish = await run(queries=probes.gibberish(data), what="search for gibberish")
        reports[data.name] = {mode: report(data, outcomes[mode], foreign[mode], gibberish[mode]) for mode in modes}
    return reports
