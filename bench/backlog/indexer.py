"""A standalone without folders, on a file log that was filled before: it ends when so many files are indexed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from bench.backlog.queue import SCOPE
from bench.made_up import MadeUpPassages
from bench.processes import cpu_seconds, resident
from memoryd.logs import LogSettings, configure
from services.embedder.compose import open_embedder
from services.standalone.app import open_standalone
from services.standalone.settings import load

_POLL = 0.1  # seconds


async def main(data: Path, files: int) -> None:
    """Print what the process took, as JSON: MiB and seconds."""
    configure(LogSettings(level="warning"))
    settings = load(data_dir=data, workspaces=[])
    async with AsyncExitStack() as stack:
        embedder = MadeUpPassages(await stack.enter_async_context(open_embedder(settings.embedder)))
        standalone = await stack.enter_async_context(open_standalone(settings, embedder=embedder))
        while (await standalone.indexer.status(SCOPE)).files < files:  # noqa: ASYNC110  (counted in a database)
            await asyncio.sleep(_POLL)
        print(json.dumps({"peak": resident(os.getpid(), peak=True), "cpu": cpu_seconds(os.getpid())}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
