"""A standalone whose passages get made-up vectors, so that a large index is there in seconds; queries use the model."""

from __future__ import annotations

import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench.made_up import MadeUpPassages
from memoryd.errors import MemorydError
from memoryd.logs import LogSettings, configure
from memoryd.process.loop import run_loop
from memoryd.server.lifecycle import Server, until_signal
from memoryd.server.settings import ServerSettings
from services.embedder.compose import open_embedder
from services.gateway.rpc import add_to
from services.standalone.app import open_standalone
from services.standalone.index import index_all
from services.standalone.keys import leave_endpoint
from services.standalone.settings import load

INDEXED = "indexed.json"
"""File in the data directory: what indexing took after the start, without loading the model: wall and CPU seconds."""


async def main(folder: Path, data: Path, *, real: bool) -> None:
    """Index a folder, then serve until SIGTERM; the endpoint file appears when everything is indexed.

    `real`: use the model for passages, too, and serve at once.
    """
    configure(LogSettings(level="warning"))  # a line a call would be measured too
    settings = load(data_dir=data, workspaces=[{"path": folder}], grpc=ServerSettings(address="127.0.0.1:0"))
    settings = settings.model_copy(update={"search": settings.search.without_caches()})
    async with until_signal(), open_embedder(settings.embedder) as model, AsyncExitStack() as stack:
        began, worked = time.perf_counter(), time.process_time()
        embedder = model if real else MadeUpPassages(model)
        standalone = await stack.enter_async_context(open_standalone(settings, embedder=embedder))
        if not real:
            await index_all(standalone, settings.workspaces[0].scope, lambda *_: None)
            (data / INDEXED).write_text(json.dumps([time.perf_counter() - began, time.process_time() - worked]))
        server = Server(settings.grpc)
        add_to(server, standalone.gateway, standalone.keys)
        async with server:
            await leave_endpoint(settings, standalone.keys, server.address)
            await server.serve()


if __name__ == "__main__":
    try:
        run_loop(main(Path(sys.argv[1]), Path(sys.argv[2]), real="--real" in sys.argv))
    except MemorydError as error:
        sys.exit(str(error))
