"""What memory a long queue takes beside a short one, and a large file beside the same text in small files."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.backlog.large import large_file
from bench.backlog.queue import SCOPE, fill
from bench.distributed.deployment import six_processes
from bench.distributed.processes import peaks
from bench.figures import Figure
from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.client import MemorydClient
from memoryd.errors import MemorydError

_MOST = 1.1  # times the memory with a short queue
_POLL = 0.2  # seconds


async def run(events: int, few: int, mebibytes: int) -> list[Figure]:
    """Index `few` files out of a queue of `few`, and out of one of `events`; then a file of `mebibytes` MiB."""
    figures = []
    for shape, measure in (("standalone", _standalone), ("distributed", _distributed)):
        short, long = await measure(few, few), await measure(events, few)
        for name, peak in long.items():
            figures.append(Figure(f"{shape}: peak memory of {name}, {few} events", short[name], "MiB"))
            figures.append(
                Figure(
                    f"{shape}: the same, {events} events",
                    peak,
                    "MiB",
                    f"with {few}",
                    peak / short[name],
                    at_most=_MOST,
                )
            )
    return [*figures, *await large_file(mebibytes)]


async def _standalone(events: int, few: int) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as temporary:
        data = Path(temporary)
        directory = DataDirectory.open(data)
        log = await SqliteFileLog.open(directory.filelog)
        await fill(log, events)
        await log.close()
        directory.close()
        command = [sys.executable, "-m", "bench.backlog.indexer", str(data), str(few)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return {"the process": json.loads(out.splitlines()[-1])["peak"]}


async def _distributed(events: int, few: int) -> Mapping[str, float]:
    async def before(nats: str, namespace: str) -> None:
        connection = await NatsConnection.open([nats])
        log = await NatsFileLog.open(connection, namespace)
        await fill(log, events)
        await log.close()
        await connection.close()

    with tempfile.TemporaryDirectory(prefix="memoryd-bench-") as temporary:
        modules = {"embedder": "bench.distributed.made_up"}
        async with six_processes(Path(temporary), modules, before) as six, six.client(SCOPE) as client:
            while await _files(client) < few:  # noqa: ASYNC110  (asks another process)
                await asyncio.sleep(_POLL)
            return {name: peak for name, peak in peaks(six).items() if name != "embedder"}


async def _files(client: MemorydClient) -> int:
    """Ask how many files are indexed; 0 while the queue is still being counted."""
    try:
        return (await client.status()).workspaces[0].files
    except MemorydError:
        return 0
