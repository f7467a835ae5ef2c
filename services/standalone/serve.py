"""Serving: all services behind one gRPC port, until a signal."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import sys
from pathlib import Path, PurePath

from pydantic import SecretStr
from rich.console import Console

from memoryd.domain.names import Scope
from memoryd.domain.queries import MAX_RESULTS, SearchQuery
from memoryd.endpoint import shell_prefix
from memoryd.errors import UnavailableError
from memoryd.logs import configure
from memoryd.metrics import exposed
from memoryd.process.variables import warn_of_mistyped
from memoryd.server.credentials import ServiceCredentialSettings, service_authenticator
from memoryd.server.lifecycle import Server, until_signal
from memoryd.tracing import exported
from services.gateway.rpc import add_to
from services.indexer.rpc import add_to as add_indexer
from services.standalone.app import Standalone, open_standalone
from services.standalone.index import index_all
from services.standalone.keys import leave_endpoint
from services.standalone.settings import StandaloneSettings

_EXAMPLE_WITHIN = 5.0


async def serve(settings: StandaloneSettings, console: Console) -> None:
    """Serve until SIGTERM or SIGINT, then drain and close. What is indexed so far is searchable at once."""
    configure(settings.log)
    warn_of_mistyped(StandaloneSettings)
    with exported("standalone"):
        async with until_signal(), exposed(settings.metrics), open_standalone(settings) as standalone:
            server = Server(settings.grpc)
            add_to(server, standalone.gateway, standalone.keys)
            operator = secrets.token_urlsafe(32)
            credentials = ServiceCredentialSettings(tokens=(SecretStr(operator),))
            add_indexer(server, standalone.indexer, service_authenticator(settings.grpc, credentials))
            async with server:
                await leave_endpoint(settings, standalone.keys, server.address, operator)
                async with asyncio.TaskGroup() as group:
                    group.create_task(server.serve())
                    group.create_task(standalone.indexer.closed())
                    group.create_task(_announce(standalone, server.address, console))


async def _announce(standalone: Standalone, address: str, console: Console) -> None:
    """Tell a person what was indexed, and what to try."""
    example, shown = "", None
    for workspace in standalone.settings.workspaces:
        try:
            status = await index_all(standalone, workspace.scope, lambda *_: None, patient=True)
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
        if not example and workspace.tenant == standalone.settings.workspaces[0].tenant:
            example, shown = await _example_query(standalone, workspace.scope), workspace.scope
    console.print(f"memoryd serves on {address}. Try, from another shell:", markup=False)
    console.print(f"  {example_command(standalone.settings, shown, example)}", markup=False)


def example_command(settings: StandaloneSettings, scope: Scope | None, query: str) -> str:
    """Give a search that finds this server from a fresh shell, and a workspace of the key left beside the data."""
    covered = [each for each in settings.workspaces if scope and each.tenant == scope.tenant]
    command = f"{shell_prefix(settings.data_dir)}{Path(sys.argv[0])} search"
    named = f" -w {scope.workspace}" if scope and len(covered) > 1 else ""
    return f"{command}{named} {shlex.quote(query or 'what did we decide?')}"


async def _example_query(standalone: Standalone, scope: Scope) -> str:
    """A heading of the newest note: words that are in this workspace for certain."""
    view = await standalone.parts.manifest.view(scope)
    notes = [outline for outline in view.outlines.values() if outline.chunks and not outline.private]
    newest = max(notes, key=lambda outline: (outline.date, outline.key.path), default=None)
    if newest is None:
        return ""
    query = SearchQuery(newest.key.path, path_prefix=newest.key.path, max_results=MAX_RESULTS, min_score=0.0)
    found = await standalone.gateway.search(scope, query, timeout=_EXAMPLE_WITHIN)
    headings = [result.heading.rpartition(" > ")[2] for result in found.answer.results]
    return next((heading for heading in headings if " " in heading), PurePath(newest.key.path).stem)
