"""The TextStore on Tantivy: one index a tenant, so that no tenant's texts shift another's scores."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from memoryd.adapters.embedded.text_commits import GroupCommit
from memoryd.adapters.embedded.text_documents import chunk_key
from memoryd.adapters.embedded.text_index import Change, TextIndex
from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError
from memoryd.ports import Filter, QueryTerm

T = TypeVar("T")

# Merges need room beside what they merge, and other engines on the same disk fare worse when it is full.
RESERVE_BYTES = 128 << 20
_PAGE = 1_000
# An open reader takes about 1 MiB, an open writer 7 MiB and 7 threads. Opening either takes some milliseconds.
_MAX_READERS = 64
_MAX_IDLE_WRITERS = 8
_IDLE_SECONDS = 30.0


class TantivyTextStore:
    """The port `TextStore`, on a folder with an index a tenant; each is opened at its first use."""

    def __init__(self, root: Path, reserve: int) -> None:
        self._root = root
        self._reserve = reserve
        self._tenants: OrderedDict[str, tuple[TextIndex, GroupCommit]] = OrderedDict()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="memoryd-text-read")
        self._writers = ThreadPoolExecutor(2, thread_name_prefix="memoryd-text-write")
        self._closed = False

    @classmethod
    async def open(cls, root: Path, *, reserve: int = RESERVE_BYTES) -> TantivyTextStore:
        """Serve the folder `root`, which is made by the first write.

        One process at a time can write there; a write of another one raises UnavailableError. `reserve` bytes of the
        disk are left free: writes are refused before.
        """
        return cls(root, reserve)

    async def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found.

        Raises ResourceExhaustedError where the disk is full or too many writes wait.
        """
        tenants: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in chunks:
            tenants[chunk.key.scope.tenant].append(chunk)
        writes = [self._upsert(tenant, added) for tenant, added in tenants.items()]
        for outcome in await asyncio.gather(*writes, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def ensure(self) -> None:
        """Nothing: what is damaged is set aside when it is opened."""

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are no error."""
        if ids:
            keys = [chunk_key(scope.workspace, chunk_id) for chunk_id in ids]
            await self._write(scope.tenant, Change(keys))

    async def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[tuple[str, float]]:
        """Rank the chunks that hold any of the terms by BM25: ids and scores, best first. No terms find nothing."""
        if not terms or not where.sources or limit < 1:
            return []
        index, _ = self._tenant(where.scope.tenant)
        return await self._run(self._readers, partial(index.search, terms, where, limit))

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Read chunks by id; those that are not there are left out."""
        index, _ = self._tenant(scope.tenant)
        return await self._run(self._readers, partial(index.chunks, scope, ids)) if ids else {}

    async def scan(
        self,
        scope: Scope,
        path: str | None = None,
        *,
        known: Container[str] | None = None,  # noqa: ARG002  (all of it is at hand)
    ) -> AsyncIterator[Sequence[ChunkRef]]:
        """Iterate in pages over all chunks that a workspace, or one file, had when the iteration began."""
        index, _ = self._tenant(scope.tenant)
        snapshot = await self._run(self._readers, partial(index.snapshot, scope, path))
        if snapshot is None:
            return
        for start in range(0, len(snapshot.addresses), _PAGE):
            yield await self._run(self._readers, partial(index.refs, snapshot, start, start + _PAGE))

    async def close(self) -> None:
        """Finish what waits and release the folder. May be called twice."""
        if not self._closed:
            self._closed = True
            await asyncio.gather(*(commits.close() for _, commits in self._tenants.values()))
            self._tenants.clear()
            self._readers.shutdown(wait=False)
            self._writers.shutdown(wait=False)

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def _upsert(self, tenant: str, chunks: Sequence[Chunk]) -> None:
        # Made here, a chunk that can't be written fails its own caller and nobody else of the group.
        await self._write(tenant, await self._run(self._writers, partial(Change.upsert, chunks)))

    async def _write(self, tenant: str, change: Change) -> None:
        # Nothing is awaited between the two: an index whose writer is wanted is never forgotten.
        _, commits = self._tenant(tenant)
        await commits.write(change)

    def _tenant(self, tenant: str) -> tuple[TextIndex, GroupCommit]:
        """Give a tenant's index, and forget the one unused for longest where there are too many."""
        self._check_open()
        if tenant not in self._tenants:
            index = TextIndex(self._root / tenant, self._reserve)
            self._tenants[tenant] = index, GroupCommit(index, self._writers, self._idle_seconds)
            if len(self._tenants) > _MAX_READERS:
                unused = (name for name, (_, commits) in self._tenants.items() if name != tenant and not commits.open)
                self._tenants.pop(next(unused, ""), None)
        self._tenants.move_to_end(tenant)
        return self._tenants[tenant]

    def _idle_seconds(self) -> float:
        """How long a writer without work is kept: not at all while there are many."""
        return _IDLE_SECONDS if sum(commits.open for _, commits in self._tenants.values()) <= _MAX_IDLE_WRITERS else 0.0

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError(f"text store {self._root} is closed: memoryd is shutting down")
