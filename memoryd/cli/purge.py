"""The command `memoryd purge`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from memoryd.cli.local import Config, DataDir
from memoryd.cli.operator import chosen, reach_indexer
from memoryd.cli.output import Json, err, out, print_json
from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgedFile, PurgeOrder
from memoryd.errors import InvalidInputError
from memoryd.ports import Maintenance

_CALL_SECONDS = 30.0
# Calls after the one that could have been verified: a store that is away ends none of them well.
_TRIES = 20
_LONGEST_PAUSE = 3600.0


@dataclass
class _Receipt:
    """What all calls have removed, together."""

    verified: bool = False
    keys: int = 0
    files: dict[tuple[Scope, str], PurgedFile] = field(default_factory=dict)

    def add(self, file: PurgedFile) -> None:
        """Count what one more call has erased."""
        before = self.files.get((file.scope, file.path), PurgedFile(file.scope, file.path))
        vectors, texts = before.vectors + file.vectors, before.texts + file.texts
        self.files[file.scope, file.path] = PurgedFile(file.scope, file.path, vectors, texts)


def purge(  # noqa: PLR0913  (one parameter an option)
    path: Annotated[str, typer.Argument(help="A file of the workspace; without it, everything is purged.")] = "",
    *,
    workspace: Annotated[str, typer.Option("--workspace", "-w", help="The workspace.")] = "",
    tenant: Annotated[str, typer.Option(help="The tenant; without --workspace, all of it.")] = "local",
    block: Annotated[bool, typer.Option("--block", help="Keep the file from being indexed again.")] = False,
    unblock: Annotated[bool, typer.Option("--unblock", help="Only take the file off the block list.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Remove a file, a workspace or a tenant for good from file log and indexes, with a receipt.

    A file must be gone from its folder, or be blocked; a workspace must not be served any more; a tenant's API keys are
    revoked. The receipt comes after
    the time until which an indexer could still be writing an older state, which is about a minute, and a last reading.
    """
    _check(path, workspace, block=block, unblock=unblock)
    if unblock:
        unblocked = asyncio.run(_unblock(FileKey(Scope(tenant, workspace), path), data_dir, config))
        if as_json:
            print_json({"unblocked": unblocked})
        else:
            out.print(f"{path}: {'off the block list' if unblocked else 'was not on the block list'}", markup=False)
        raise typer.Exit(0)
    everything = "/".join(filter(None, (tenant, workspace)))
    if not path and not yes and not typer.confirm(f"Remove all of {everything} for good?", err=True):
        raise typer.Exit(1)
    receipt = asyncio.run(_purge(PurgeOrder(tenant, workspace, path, block), data_dir, config))
    if as_json:
        print_json(_as_json(receipt))
    else:
        for file in receipt.files.values():
            line = f"removed {file.scope}/{file.path}: {file.vectors} vector chunks, {file.texts} text chunks"
            out.print(line, markup=False)
        if receipt.keys:
            out.print(f"revoked {receipt.keys} API keys of {tenant}", markup=False)
        out.print("verified: nothing of it is left" if receipt.verified else "not verified", markup=False)
    raise typer.Exit(0 if receipt.verified else 1)


def _check(path: str, workspace: str, *, block: bool, unblock: bool) -> None:
    if path and not workspace:
        raise InvalidInputError("--workspace: empty; name the workspace that the file belongs to", field="workspace")
    if (block or unblock) and not path:
        raise InvalidInputError("PATH: empty; only a file can be blocked", field="path")
    if block and unblock:
        raise InvalidInputError("--block and --unblock: choose one", field="block")


async def _unblock(key: FileKey, data_dir: Any, config: Any) -> bool:  # noqa: ANN401  (paths, as typer gives them)
    async with reach_indexer(data_dir, config) as indexer:
        chosen(await indexer.workspaces(), key.scope.tenant, key.scope.workspace)
        return await indexer.unblock(key, timeout=_CALL_SECONDS)


async def _purge(order: PurgeOrder, data_dir: Any, config: Any) -> _Receipt:  # noqa: ANN401  (as above)
    async with reach_indexer(data_dir, config) as indexer:
        # Of a mistyped one nothing is left either, and a receipt that says so would be taken for the other's.
        chosen(await indexer.workspaces(), order.tenant, order.workspace)
        return await _until_verified(indexer, order)


async def _until_verified(indexer: Maintenance, order: PurgeOrder) -> _Receipt:
    receipt = _Receipt()
    for _ in range(_TRIES):
        answer = await indexer.purge(order, timeout=_CALL_SECONDS)
        for file in answer.files:
            receipt.add(file)
        receipt.keys += answer.keys
        if answer.verified:
            receipt.verified = True
            break
        err.print(f"waiting {answer.again_in:.0f} s for {answer.waits_for}", style="dim", markup=False)
        await asyncio.sleep(min(answer.again_in, _LONGEST_PAUSE))
    return receipt


def _as_json(receipt: _Receipt) -> dict[str, Any]:
    return {
        "verified": receipt.verified,
        "keys": receipt.keys,
        "files": [
            {
                "tenant": file.scope.tenant,
                "workspace": file.scope.workspace,
                "path": file.path,
                "vector_chunks": file.vectors,
                "text_chunks": file.texts,
            }
            for file in receipt.files.values()
        ],
    }
