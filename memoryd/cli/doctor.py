"""The command `memoryd doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from memoryd.cli.local import Config, DataDir
from memoryd.cli.operator import chosen, reach_indexer
from memoryd.cli.output import Json, err, out, print_json
from memoryd.cli.progress import Report, bar
from memoryd.domain.names import Scope
from memoryd.domain.repairs import Checkup, Finding, Treatment
from memoryd.ports import Maintenance

_CHECK_SECONDS = 100.0
_LOOK_AGAIN = 0.3
# Without any progress for so long, what is queued is not waited for any more.
_STALLED = 60.0
_ROUNDS = 3


@dataclass
class _Result:
    """A workspace: what was found in it at first, and what it is like now."""

    now: Checkup
    found: list[Finding] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing is left to find."""
        return not self.now.findings and self.now.judged


def doctor(
    *,
    check: Annotated[bool, typer.Option("--check", help="Only look: mend nothing.")] = False,
    tenant: Annotated[str, typer.Option(help="The tenant of --workspace.")] = "local",
    workspace: Annotated[str, typer.Option("--workspace", "-w", help="Only this one; default: all.")] = "",
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Compare file log, outlines and both indexes, and mend what does not fit: 0 clean or mended, 1 not mendable.

    Asks the server that uses the data directory, or opens it where none does; with MEMORYD_CLIENT_INDEXER set, asks
    that deployment's indexer.
    """

    async def run() -> list[_Result]:
        with bar(err) as report:
            async with reach_indexer(data_dir, config) as indexer:
                scopes = chosen(await indexer.workspaces(), tenant, workspace)
                return [await _look_after(indexer, scope, mend=not check, report=report) for scope in scopes]

    results = asyncio.run(run())
    clean = all(result.clean for result in results)
    if as_json:
        print_json({"clean": clean, "workspaces": [_as_json(result) for result in results]})
    else:
        _show(results)
    raise typer.Exit(0 if clean else 1)


async def _look_after(indexer: Maintenance, scope: Scope, *, mend: bool, report: Report) -> _Result:
    result = _Result(await indexer.check(scope, mend=mend, timeout=_CHECK_SECONDS))
    result.found += result.now.findings
    for _ in range(_ROUNDS):
        if not mend or result.clean or result.now.left:
            break
        await _settled(indexer, scope, report)
        result.now = await indexer.check(scope, mend=True, timeout=_CHECK_SECONDS)
        known = {(finding.path, finding.defect) for finding in result.found}
        result.found += [each for each in result.now.findings if (each.path, each.defect) not in known]
    return result


async def _settled(indexer: Maintenance, scope: Scope, report: Report) -> None:
    """Wait until what was queued is indexed, or does not get on."""
    loop = asyncio.get_running_loop()
    total = last = (await indexer.status(scope)).pending
    moved = loop.time()
    while last and loop.time() - moved < _STALLED:
        report(f"mending {scope.workspace}", total - last, total)
        await asyncio.sleep(_LOOK_AGAIN)
        pending = (await indexer.status(scope)).pending
        total = max(total, pending)
        if pending != last:
            last, moved = pending, loop.time()


def _as_json(result: _Result) -> dict[str, Any]:
    now = result.now
    return {
        "tenant": now.scope.tenant,
        "workspace": now.scope.workspace,
        "files": now.files,
        "chunks": now.chunks,
        "pending": now.pending,
        "stray": now.stray,
        "clean": result.clean,
        "found": [_finding(finding) for finding in result.found],
        "remaining": [_finding(finding) for finding in now.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.path,
        "defect": finding.defect.value,
        "vector_chunks": finding.vectors,
        "text_chunks": finding.texts,
        "treatment": finding.treatment.value,
        "detail": finding.detail,
    }


def _show(results: Sequence[_Result]) -> None:
    for result in results:
        now = result.now
        state = "clean" if result.clean else "not mended" if now.left else "found" if now.findings else "indexing"
        if result.clean and result.found:
            state = "mended"
        line = f"{now.scope}: {state}: {now.files} files, {now.chunks} chunks, {now.pending} pending, {now.stray} stray"
        out.print(line, markup=False)
        for finding in result.found:
            treated = "" if finding.treatment is Treatment.NONE else f": {finding.treatment.value}"
            counts = [f"{n} {kind} chunks" for n, kind in ((finding.vectors, "vector"), (finding.texts, "text")) if n]
            what = ", ".join([finding.defect.value.replace("_", " "), *counts])
            style = "yellow" if finding.treatment is Treatment.LEFT else ""
            out.print(f"  {finding.path}: {what}{treated}", style=style, markup=False)
            if finding.detail:
                out.print(f"    {finding.detail}", style="yellow", markup=False)
    if not results:
        out.print("nothing is known yet: nothing to compare")
