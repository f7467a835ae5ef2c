"""Commands that ask a running server: search, get, status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Annotated, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from memoryd.cli.generations import ready_in
from memoryd.cli.output import Json, Server, err, out, print_json
from memoryd.client import (
    MemorydClient,
    Model,
    PartProbe,
    SearchReply,
    StatusReply,
    SyncReply,
    WorkspaceStatus,
    connect,
)
from memoryd.errors import MemorydError

_Reply = TypeVar("_Reply")

Workspace = Annotated[str, typer.Option("--workspace", "-w", help="Workspace; needed where the key has several.")]


def search(  # noqa: PLR0913  (one parameter an option)
    query: Annotated[str, typer.Argument(help="What to look for: any text.")],
    *,
    max_results: Annotated[int, typer.Option("--max-results", "-n", help="1 to 50.")] = 6,
    min_score: Annotated[float | None, typer.Option(help="0 to 1; default 0.35.")] = None,
    mode: Annotated[str, typer.Option(help="hybrid, vector or text.")] = "hybrid",
    source: Annotated[str, typer.Option(help="memory, sessions or all.")] = "all",
    path_prefix: Annotated[str, typer.Option(help="Only paths that start with this.")] = "",
    glob: Annotated[str, typer.Option(help="Only paths that match, such as 'memory/projects/**'.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="Only files with this tag; repeat it for several.")] = None,
    since: Annotated[str, typer.Option(help="Only files dated on or after YYYY-MM-DD.")] = "",
    until: Annotated[str, typer.Option(help="Only files dated on or before YYYY-MM-DD.")] = "",
    decay: Annotated[float | None, typer.Option(help="Half-life of dated notes in days; 0: no decay.")] = None,
    mmr: Annotated[float | None, typer.Option(help="0 to 1: relevance against novelty; 1: by score alone.")] = None,
    lex: Annotated[list[str] | None, typer.Option(help="Also look for these words; repeatable.")] = None,
    vec: Annotated[list[str] | None, typer.Option(help="Also look for this meaning; repeatable.")] = None,
    hyde: Annotated[list[str] | None, typer.Option(help="Also look for what is like this answer; repeatable.")] = None,
    chat: Annotated[str, typer.Option(help="direct, group or channel.")] = "direct",
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
    workspace: Workspace = "",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Find the lines of a workspace that answer a query."""
    typed = [(kind, text) for kind, texts in (("lex", lex), ("vec", vec), ("hyde", hyde)) for text in texts or ()]

    async def ask(client: MemorydClient) -> SearchReply:
        return await client.search(
            query,
            workspace=workspace,
            max_results=max_results,
            min_score=min_score,
            mode=mode,
            source=source,
            path_prefix=path_prefix,
            glob=glob,
            tags=tag or (),
            since=since,
            until=until,
            decay=decay,
            mmr=mmr,
            chat=chat,
            explain=explain,
            typed=typed,
        )

    reply = _run(server, ask)
    if as_json:
        print_json(asdict(reply))
        return
    for result in reply.results:
        title = Text(f"{result.path}:{result.start_line}-{result.end_line}", style="bold cyan")
        title.append(f"  {result.score:.2f}", style="green")
        title.append(f"  {result.heading}", style="dim")
        out.print(title)
        out.print(Text(result.snippet))
        if result.stale:
            out.print(Text("  the file's newest state is set aside: see `memoryd status`", style="yellow"))
        for step in result.explanation:
            out.print(Text(f"  {step}", style="dim"))
        out.print()
    if not reply.results:
        err.print("nothing relevant found", style="yellow")
    if reply.stale:
        err.print(f"{reply.pending} file changes are not searchable yet", style="yellow")
    for stage in reply.degraded:
        line = f"degraded: {stage.stage} {stage.reason}: {stage.detail}; did {stage.instead}"
        err.print(line, style="yellow", markup=False)


def get(
    path: Annotated[str, typer.Argument(help="Relative to the workspace, for example memory/2026-03-05.md.")],
    *,
    start: Annotated[int, typer.Option("--from", min=1, help="First line, from 1.")] = 1,
    lines: Annotated[int, typer.Option(min=1, help="How many lines at most.")] = 120,
    chat: Annotated[str, typer.Option(help="direct, group or channel.")] = "direct",
    workspace: Workspace = "",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Read lines of a file of the workspace."""
    reply = _run(server, lambda client: client.get(path, start=start, lines=lines, chat=chat, workspace=workspace))
    if as_json:
        print_json(asdict(reply))
        return
    if reply.status == "not_found":
        err.print(f"there is no file {path}", style="yellow", markup=False)
        return
    if not reply.text:
        err.print(f"{path} has {reply.total_lines} lines: nothing from line {start} on", style="yellow", markup=False)
        return
    out.out(reply.text, end="" if reply.text.endswith("\n") else "\n")
    if reply.next_from:
        err.print(f"more from line {reply.next_from}: --from {reply.next_from}", style="dim")


def status(
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Ask each part something small: 1 if any fails.")] = False,
    workspace: Workspace = "",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Show what is indexed and what is pending."""
    parts = _run(server, lambda client: client.probe(workspace=workspace)) if deep else ()
    failed = [part for part in parts if part.reason]
    reply: StatusReply | None = None
    try:
        reply = _run(server, lambda client: client.status(workspace=workspace))
    except MemorydError:
        if not failed:
            raise
    if as_json:
        shown = {"parts": [asdict(part) for part in parts]} if deep else {}
        print_json((asdict(reply) if reply else {}) | shown)
    else:
        _show_parts(parts)
        if reply:
            _show_status(reply)
    if failed:
        raise typer.Exit(1)


def _show_parts(parts: Sequence[PartProbe]) -> None:
    for part in parts:
        how = f"fails: {part.reason}" if part.reason else "answers"
        line = f"{part.part:<13}{how} after {part.milliseconds:.1f} ms"
        out.print(Text(line, style="yellow" if part.reason else ""))


def _show_status(reply: StatusReply) -> None:
    table = Table("workspace", "files", "chunks", "pending", "behind", "set aside", "folder read", "compared", "state")
    for item in reply.workspaces:
        table.add_row(
            item.workspace,
            str(item.files),
            str(item.chunks),
            str(item.pending),
            f"{item.lag_seconds:.0f} s" if item.pending else "–",
            str(len(item.quarantined)),
            _ago(item.reconciled_at),
            _ago(item.checked_at),
            _state(item),
        )
    out.print(table)
    for item in reply.workspaces:
        for file in item.quarantined:
            out.print(Text(f"set aside: {item.workspace}/{file.path}: {file.reason}: {file.detail}", style="yellow"))
        for warned in item.warnings:
            out.print(Text(f"warning: {item.workspace}/{warned.path}: {warned.warning}", style="yellow"))
    for each in reply.generations:
        if not each.current or each.state != "ready" or each.problem:
            state = f"{each.state}, {each.progress:.0%}, ready in {ready_in(each.pending, each.eta)}"
            role = "answers" if each.current else "does not answer"
            out.print(Text(f"generation {each.id} ({each.model}): {role}, {state} {each.problem}".rstrip()))
    out.print(_described(reply.model, reply.calibration) if reply.model else "the embedder is down", markup=False)
    out.print(f"disk  {reply.disk_bytes / 1e6:.1f} MB, memoryd {reply.version}")


def _described(model: Model, calibration: str) -> str:
    if calibration == "borrowed":
        calibration = "another model's, see `memoryd model calibrate`"
    return f"model {model.name} ({model.engine}, {model.dimensions} dimensions), calibration: {calibration}"


def _state(status: WorkspaceStatus) -> str:
    failure = status.failure
    if not status.available or not status.pending:
        return status.problem or "ready"
    return f"{failure.stage} fails: {failure.reason}" if failure and failure.ongoing else "indexing"


def _ago(when: float) -> str:
    return f"{max(time.time() - when, 0) / 60:.0f} min ago" if when else "not yet"


def sync(
    *,
    wait: Annotated[float, typer.Option(help="Seconds to wait until what changed is searchable.")] = 60.0,
    workspace: Workspace = "",
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Compare a workspace's folders with what is indexed, and wait: exit 1 where something is still pending."""
    reply: SyncReply = _run(server, lambda client: client.sync(workspace=workspace, timeout=wait))
    if as_json:
        print_json(asdict(reply))
    else:
        out.print(f"{reply.changed} files changed, {reply.pending} are not searchable yet")
    raise typer.Exit(1 if reply.pending else 0)


def _run(server: str | None, ask: Callable[[MemorydClient], Awaitable[_Reply]]) -> _Reply:
    async def run() -> _Reply:
        async with connect(server) as client:
            return await ask(client)

    return asyncio.run(run())
