"""Serving: all services behind one gRPC port, until a signal."""

from __future__ import annotations

import asyncio

from rich.console import Console

from memoryd.errors import UnavailableError
from memoryd.logs import configure
from memoryd.metrics import exposed
from memoryd.server.lifecycle import Server, until_signal
from services.gateway.rpc import add_to
from services.standalone.app import Standalone, open_standalone
from services.standalone.index import index_all
from services.standalone.keys import leave_endpoint
from services.standalone.settings import StandaloneSettings


async def serve(settings: StandaloneSettings, console: Console) -> None:
    """Serve until SIGTERM or SIGINT, then drain and close. What is indexed so far is searchable at once."""
    configure(settings.log)
    async with until_signal(), exposed(settings.metrics), open_standalone(settings) as standalone:
        server = Server(settings.grpc)
        add_to(server, standalone.gateway, standalone.keys)
        async with server:
            await leave_endpoint(settings, standalone.keys, server.address)
            async with asyncio.TaskGroup() as group:
                group.create_task(server.serve())
                group.create_task(standalone.indexer.closed())
                group.create_task(_announce(standalone, server.address, console))


async def _announce(standalone: Standalone, address: str, console: Console) -> None:
    """Tell a person what was indexed, and what to try."""
    for workspace in standalone.settings.workspaces:
        try:
            status = await index_all(standalone, workspace.scope, lambda *_: None)
        except UnavailableError as error:
            console.print(f"{workspace.scope.workspace}: {error}", style="red", markup=False)
            continue
        console.print(
            f"{workspace.scope.workspace}: {status.files} files, {status.chunks} chunks from {workspace.path}",
            markup=False,
        )
        for file in status.quarantined:
            line = f"  set aside: {file.path}: {file.problem.reason}: {file.problem.detail}"
            console.print(line, style="yellow", markup=False)
    console.print(f"memoryd serves on {address}. Try, from another shell:", markup=False)
    console.print('  memoryd search "what do we do if a cold room is warming up in the middle of the night?"')
