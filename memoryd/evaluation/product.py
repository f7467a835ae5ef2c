"""Asking a running memoryd the queries of a set, through its public API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from memoryd.client import MemorydClient, WorkspaceStatus
from memoryd.domain.queries import MAX_QUERY, MAX_RESULTS, Mode, Rerank
from memoryd.errors import InvalidInputError, UnavailableError
from memoryd.evaluation.run import Answer
from memoryd.evaluation.sets import RetrievalSet

# Called with what is done, how much of it, and of how much.
Report = Callable[[str, int, int], None]

# A query that is too long for the model's window is cut in any case: what is measured is the product's answer to it.
_EXPECTED = frozenset({"CUT_SHORT"})
_ATTEMPTS = 3
# Seconds between two looks at how far indexing is: while it has long to go, and near its end. A look costs each process
# some milliseconds.
_POLL, _POLL_NEAR_END = 1.0, 0.25
_NEAR_END = 0.9
_STALLED = 120.0  # seconds without progress of indexing


@dataclass(frozen=True, slots=True)
class ServedProduct:
    """A server that holds the set's documents.

    Attributes:
        client: of a key that covers the workspaces.
        workspaces: the name of each group's workspace there.
        rerank: whether the fused order is refined.
    """

    client: MemorydClient
    workspaces: Mapping[str, str]
    rerank: Rerank = Rerank.AUTO

    @classmethod
    async def find(cls, client: MemorydClient, data: RetrievalSet, workspace: str = "") -> Self:
        """Find the workspaces of a set's groups: `workspace`, else that of the group's name, else the only one.

        Raises InvalidInputError where a group has none.
        """
        served = [status.workspace for status in (await client.status()).workspaces]
        found = {}
        for group in data.groups:
            alone = len(data.groups) == 1
            name = workspace if workspace and alone else group
            if name not in served and alone and not workspace and len(served) == 1:
                name = served[0]
            if name not in served:
                raise InvalidInputError(
                    f"the key covers no workspace {name!r} for {data.name} (it covers: {', '.join(served)}); "
                    "name one with --workspace"
                )
            found[group] = name
        return cls(client, found)

    async def indexed(self, data: RetrievalSet, progress: Report) -> list[WorkspaceStatus]:
        """Wait until the server has indexed every document. Raises UnavailableError where it makes no progress."""
        return [
            await until_indexed(self.client, name, sum(each.group == group for each in data.documents), progress)
            for group, name in self.workspaces.items()
        ]

    async def search(self, group: str, text: str, mode: Mode, *, everything: bool) -> Answer:
        """Ask, again where the answer was degraded or stale: what remains so is told by the answer."""
        for _ in range(_ATTEMPTS - 1):
            answer = await self._search(group, text, mode, everything=everything)
            if answer.whole:
                return answer
        return await self._search(group, text, mode, everything=everything)

    async def _search(self, group: str, text: str, mode: Mode, *, everything: bool) -> Answer:
        began = time.perf_counter()
        reply = await self.client.search(
            # Sets hold texts as queries that no agent would ask: their beginning is what the product can take.
            text[:MAX_QUERY],
            workspace=self.workspaces[group],
            mode=mode,
            max_results=MAX_RESULTS if everything else None,
            min_score=0.0 if everything else None,
            rerank=self.rerank,
        )
        milliseconds = (time.perf_counter() - began) * 1000
        whole = not reply.stale and all(entry.reason in _EXPECTED for entry in reply.degraded)
        return Answer(reply.results, milliseconds, reply.timings, whole=whole)


async def until_indexed(client: MemorydClient, workspace: str, files: int, progress: Report) -> WorkspaceStatus:
    """Wait until a workspace holds so many files and nothing is pending.

    Raises UnavailableError where nothing moves for two minutes.
    """
    clock = asyncio.get_running_loop().time
    last, since = (-1, -1), clock()
    while True:
        (status,) = (await client.status(workspace=workspace)).workspaces
        held = status.files + len(status.quarantined)
        if held >= files and not status.pending:
            return status
        progress(f"indexing {workspace}", min(held, files), files)
        if last != (held, status.pending):
            last, since = (held, status.pending), clock()
        elif clock() - since > _STALLED:
            raise UnavailableError(
                f"workspace {workspace} holds {held} of {files} files, {status.pending} changes are pending, and "
                "nothing happens: does it hold the set's documents, and does the indexer run?"
            )
        await asyncio.sleep(_POLL if held < files * _NEAR_END else _POLL_NEAR_END)
