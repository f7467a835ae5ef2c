"""The vector store on qdrant-edge: Qdrant's engine in this process."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import qdrant_edge as edge
from numpy.typing import NDArray

from memoryd.adapters.embedded import points
from memoryd.adapters.embedded.compaction import compact, is_worth_it
from memoryd.adapters.embedded.shard import advice, open_shard, read_ahead, sync_log
from memoryd.adapters.payloads import (
    CHUNK_FIELDS,
    REF_FIELDS,
    SCOPE_FIELDS,
    SKETCH_FIELD,
    in_scope,
    to_chunk,
    to_ref,
    to_sketch,
)
from memoryd.adapters.scanning import refs
from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.names import Scope
from memoryd.errors import DAMAGED, DataError, InvalidInputError, MemorydError, ResourceExhaustedError, UnavailableError
from memoryd.ports import EmbeddedChunk, Embedding, Filter, Nearest

T = TypeVar("T")
Operations = Iterator[edge.UpdateOperation]

# The engine writes through memory maps, where a full disk kills the process instead of failing a call.
RESERVE_BYTES = 128 << 20
_PAGE = 1_000
# The engine holds the GIL during a call. Bulk goes in by pieces of some 2 ms, and a search comes between two.
_PIECE = 64
# Bytes, about, after which the write-ahead log is emptied. That syncs about 70 files under the GIL, 15 to 350 ms as the
# disk is busy, so not with every upsert. 35 MB are 10,000 points without a sketch and 2,000 with one; they are applied
# again in about a second after a crash.
_FLUSH_BYTES = 35 << 20
_EXACT = edge.SearchParams(exact=True)
# Where a compaction has left vectors as bytes, too; others are compared in full.
_BY_BYTES = edge.SearchParams(quantization=edge.QuantizationSearchParams(rescore=True, oversampling=2.0))
_POINT_BYTES = 3_600  # of a point without its sketch


class EdgeVectorStore:
    """The port `VectorStore`, on one shard.

    A write is durable when the shard's write-ahead log is synced. That is done here, without the GIL, once for all
    writes that wait (the engine would do it only in a flush). Searches compare all vectors: no graph is built.
    """

    def __init__(self, root: Path, shard: edge.EdgeShard, dimensions: int, reserve: int) -> None:
        self._root = root
        self._shard = shard
        self._dimensions = dimensions
        self._reserve = reserve
        self._unflushed = 0
        self._waiting: list[tuple[Operations, asyncio.Future[None]]] = []
        self._committer: asyncio.Task[None] | None = None
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="memoryd-vectors-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="memoryd-vectors-write")
        self._closed = False

    @classmethod
    async def open(cls, root: Path, dimensions: int, *, reserve: int = RESERVE_BYTES) -> EdgeVectorStore:
        """Open or create the shard in the folder `root`. One that has grown large is compacted first, which takes time.

        Args:
            root: the folder, alone with its generation's other parts in a folder of their own.
            dimensions: length of a vector.
            reserve: bytes of the disk that are left free; writes are refused before.

        Raises DataError where the folder is damaged, half there, or holds vectors of another length, and
        ResourceExhaustedError where the disk is full.
        """
        shard = await asyncio.to_thread(open_shard, root, dimensions)
        if is_worth_it(shard):
            await asyncio.to_thread(shard.close)
            await compact(root, dimensions)
            shard = await asyncio.to_thread(open_shard, root, dimensions)
        await asyncio.to_thread(read_ahead, root)
        return cls(root, shard, dimensions, reserve)

    async def upsert(self, chunks: Sequence[EmbeddedChunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found.

        Raises InvalidInputError for a vector of another length or with a value that is no number, and
        ResourceExhaustedError where the disk is full.
        """
        for embedded in chunks:
            self._check(embedded.vector, embedded.chunk.key.path)
        pieces = [chunks[start : start + _PIECE] for start in range(0, len(chunks), _PIECE)]
        self._unflushed += sum(_POINT_BYTES + 4 * len(embedded.sketch) // 3 for embedded in chunks)
        await self._write(edge.UpdateOperation.upsert_points([points.point(c) for c in piece]) for piece in pieces)

    async def ensure(self) -> None:
        """Nothing: what is damaged is set aside when it is opened."""

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are no error."""
        if ids:
            where = points.with_ids(scope, ids)
            await self._write(iter([edge.UpdateOperation.delete_points_by_filter(where)]))

    async def nearest(self, vector: NDArray[np.float32], where: Filter, limit: int, ids: Sequence[str]) -> Nearest:
        """Find the nearest chunks, best first, and compare those named, too, in one call that reads no chunk."""
        self._check(vector, "the query")

        def work() -> Nearest:
            found = self._nearest(vector, points.condition(where), limit, _BY_BYTES)
            named = self._nearest(vector, points.with_ids(where.scope, ids), len(ids)) if ids else []
            return Nearest(
                [(str(hit.id), hit.score) for hit in found],
                dict.fromkeys(ids) | {str(hit.id): hit.score for hit in named},
            )

        return await self._read(work)

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Read chunks by id; those that are not there are left out."""
        records = await self._records(scope, ids, CHUNK_FIELDS)
        return {name: to_chunk(name, payload) for name, payload in records}

    async def cosines(self, vector: NDArray[np.float32], scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        """Compare a vector with chunks that another leg found, by id. Missing ones are left out."""
        self._check(vector, "the query")
        where = points.with_ids(scope, ids)
        hits = await self._read(lambda: self._nearest(vector, where, len(ids))) if ids else []
        return {str(hit.id): hit.score for hit in hits}

    async def sketches(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, bytes]:
        """Read chunks' token sketches by id; chunks that have none, or are not there, are left out."""
        records = await self._records(scope, ids, [*SCOPE_FIELDS, SKETCH_FIELD])
        return {name: sketch for name, payload in records if (sketch := to_sketch(payload))}

    async def embeddings(self, tenant: str, text_hashes: Sequence[str]) -> Mapping[str, Embedding]:
        """Find what texts were turned into before, within one tenant, by text hash. Missing ones are left out."""
        found: dict[str, Embedding] = {}
        wanted = list(dict.fromkeys(text_hashes))
        for start in range(0, len(wanted), _PAGE):
            hashes = points.any_of("text_hash", wanted[start : start + _PAGE])
            where = edge.Filter(must=[points.equals("tenant", tenant), hashes])
            async for page in self._scroll(where, ["text_hash", SKETCH_FIELD], with_vector=True):
                for record in page:
                    payload, vector = record.payload or {}, np.asarray(record.vector, dtype=np.float32)
                    found[payload["text_hash"]] = Embedding(vector, to_sketch(payload))
        return found

    def scan(
        self, scope: Scope, path: str | None = None, *, known: Container[str] | None = None
    ) -> AsyncIterator[Sequence[ChunkRef]]:
        """Iterate in pages over all stored chunks of a workspace, or of one file; of `known` ones, over their ids."""
        must = points.in_scope(scope)
        if path is not None:
            must.append(points.equals("path", path))
        scroll = partial(self._scroll, with_vector=False)
        return refs(scroll, edge.Filter(must=must), partial(points.with_ids, scope), known)

    async def count(self) -> int:
        """Count the stored chunks of all scopes, about; those are included that no outline lists."""
        return await self._read(lambda: self._shard.info().points_count)

    async def check(self) -> None:
        """Read every vector and some of what is stored beside them. Raises DataError where that can't be read.

        A file that was cut short opens well: only what reads its end fails. Costs as much as one search.
        """

        def work() -> None:
            query = edge.Query.Nearest([1.0] + [0.0] * (self._dimensions - 1))
            self._shard.query(edge.QueryRequest(limit=1, query=query, params=_EXACT))
            request = edge.ScrollRequest(limit=_PAGE, with_payload=REF_FIELDS, with_vector=False)
            for record in self._shard.scroll(request)[0]:
                to_ref(str(record.id), record.payload or {})

        try:
            await self._run(self._reader, work)
        except UnavailableError as error:
            raise DataError(f"vector store {self._root} can't be read: {advice(self._root)}", reason=DAMAGED) from error

    async def close(self) -> None:
        """Finish what waits and release the folder. May be called twice."""
        if not self._closed:
            self._closed = True
            if self._committer:
                await self._committer
            await self._run(self._writer, self._shard.close)
            self._reader.shutdown(wait=False)
            self._writer.shutdown(wait=False)

    def _nearest(
        self, vector: NDArray[np.float32], where: edge.Filter, limit: int, params: edge.SearchParams = _EXACT
    ) -> list[edge.ScoredPoint]:
        request = edge.QueryRequest(
            limit=limit,
            query=edge.Query.Nearest(vector.tolist()),
            filter=where,
            with_payload=False,
            params=params,
        )
        return self._shard.query(request)

    async def _records(
        self, scope: Scope, ids: Sequence[str], fields: list[str]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Read fields of chunks that are there, by id; those of `SCOPE_FIELDS` must be among them.

        By id alone, without a filter to be planned: 1 ms of the interpreter's lock for a hundred sketches instead of
        1.6. Of another workspace's chunks nothing is given.
        """
        found: list[tuple[str, Mapping[str, Any]]] = []
        for start in range(0, len(ids), _PAGE):
            page = await self._read(
                partial(self._shard.retrieve, list(ids[start : start + _PAGE]), fields, with_vector=False)
            )
            held = ((str(record.id), record.payload or {}) for record in page)
            found += [(name, payload) for name, payload in held if in_scope(payload, scope)]
        return found

    async def _scroll(
        self, where: edge.Filter, fields: list[str], *, with_vector: bool
    ) -> AsyncIterator[list[edge.Record]]:
        offset: edge.PointId | None = None
        while True:
            request = edge.ScrollRequest(
                offset=offset, limit=_PAGE, filter=where, with_payload=fields or False, with_vector=with_vector
            )
            page, offset = await self._read(partial(self._shard.scroll, request))
            if page:
                yield page
            if offset is None:
                return

    async def _write(self, operations: Operations) -> None:
        """Queue operations for the next commit and wait for it."""
        if self._closed:
            raise UnavailableError(f"vector store {self._root} is closed: memoryd is shutting down")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((operations, done))
        if self._committer is None or self._committer.done():
            self._committer = asyncio.create_task(self._commit())
        await done

    async def _commit(self) -> None:
        """Apply what waits, group by group, and tell each caller how its own operations went."""
        while self._waiting:
            group = [(operations, done) for operations, done in self._waiting if not done.done()]
            self._waiting = []
            operations = [operations for operations, _ in group]
            errors = await asyncio.get_running_loop().run_in_executor(self._writer, self._apply, operations)
            for (_, done), error in zip(group, errors, strict=True):
                if done.done():
                    continue  # its caller was cancelled meanwhile
                if error:
                    done.set_exception(error)
                else:
                    done.set_result(None)

    def _apply(self, group: list[Operations]) -> list[MemorydError | None]:
        try:
            if shutil.disk_usage(self._root).free < self._reserve:
                raise ResourceExhaustedError(  # noqa: TRY301  (every way out of here answers every caller)
                    f"less than {self._reserve >> 20} MiB are free on the disk of {self._root}: free some, try again",
                    reason="DISK_FULL",
                )
            errors = [self._apply_one(operations) for operations in group]
            sync_log(self._root)
            if self._unflushed >= _FLUSH_BYTES:
                self._shard.flush()
                self._unflushed = 0
        except BaseException as error:  # noqa: BLE001  (a panic of the engine is no Exception; nobody is left waiting)
            return [self._failure(error)] * len(group)
        return errors

    def _apply_one(self, operations: Operations) -> MemorydError | None:
        try:
            for operation in operations:
                self._shard.update(operation)
        except BaseException as error:  # noqa: BLE001  (as in `_apply`)
            return self._failure(error)
        return None

    async def _read(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise UnavailableError(f"vector store {self._root} is closed: memoryd is shutting down")
        return await self._run(self._reader, work)

    async def _run(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        def guarded() -> T:
            try:
                return work()
            except BaseException as error:
                raise self._failure(error) from error

        return await asyncio.get_running_loop().run_in_executor(thread, guarded)

    def _failure(self, error: BaseException) -> MemorydError:
        if isinstance(error, MemorydError):
            return error
        failure = UnavailableError(
            f"vector store {self._root} failed: restart memoryd. If it fails again: {advice(self._root)}"
        )
        failure.__cause__ = error
        return failure

    def _check(self, vector: NDArray[np.float32], what: str) -> None:
        if vector.shape != (self._dimensions,) or not np.isfinite(vector).all():
            raise InvalidInputError(
                f"the vector of {what} has shape {vector.shape} or holds a value that is no number: the index needs "
                f"{self._dimensions} finite numbers, so ask the embedder that the generation was built with",
            )
