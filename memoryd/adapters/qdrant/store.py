"""The vector store on Qdrant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from qdrant_client import AsyncQdrantClient, models
from qdrant_client import grpc as wire
from qdrant_client.conversions.common_types import PointId
from qdrant_client.conversions.conversion import RestToGrpc

from memoryd.adapters.payloads import (
    CHUNK_FIELDS,
    SKETCH_FIELD,
    to_chunk,
    to_sketch,
)
from memoryd.adapters.qdrant.collection import ensure_collection
from memoryd.adapters.qdrant.connection import connect, translated
from memoryd.adapters.qdrant.points import any_of, condition, equals, in_scope, point, with_ids
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.adapters.scanning import refs
from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError
from memoryd.ports import EmbeddedChunk, Embedding, Filter, Nearest

_PAGE = 1_000
# Points in one write: some 2 MB at 384 dimensions.
_BATCH = 256
# Compare with the full vectors and with each of them.
_EXACT = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))


class QdrantVectorStore:
    """The port `VectorStore`, on one collection."""

    def __init__(self, client: AsyncQdrantClient, collection: str, dimensions: int, settings: QdrantSettings) -> None:
        self._client = client
        self._collection = collection
        self._dimensions = dimensions
        self._settings = settings
        # Points that are on most replicas. ("majority" asks as many, but gives only what all of those have: a write
        # that most replicas have confirmed could be missed.)
        self._consistency = models.ReadConsistencyType.QUORUM if settings.replication > 1 else None

    @classmethod
    async def open(cls, settings: QdrantSettings, collection: str, dimensions: int) -> QdrantVectorStore:
        """Connect, and create the collection where there is none; several processes may do so at once.

        Args:
            settings: how to reach Qdrant.
            collection: its name, the generation's own.
            dimensions: length of a vector.

        Raises DataError where the collection holds vectors of another length.
        """
        client = connect(settings)
        try:
            with translated(settings):
                await ensure_collection(client, collection, dimensions, settings)
        except BaseException:
            await client.close()
            raise
        return cls(client, collection, dimensions, settings)

    async def upsert(self, chunks: Sequence[EmbeddedChunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found.

        Raises InvalidInputError for a vector of another length or with a value that is no number.
        """
        for embedded in chunks:
            self._check(embedded.vector, embedded.chunk.key.path)
        for start in range(0, len(chunks), _BATCH):
            points = [point(embedded) for embedded in chunks[start : start + _BATCH]]
            with translated(self._settings):
                await self._client.upsert(self._collection, points, wait=True)

    async def ensure(self) -> None:
        """Create the collection where it was lost, empty."""
        with translated(self._settings):
            await ensure_collection(self._client, self._collection, self._dimensions, self._settings)

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are no error."""
        if ids:
            selector = models.FilterSelector(filter=with_ids(scope, ids))
            with translated(self._settings):
                await self._client.delete(self._collection, selector, wait=True)

    async def nearest(self, vector: NDArray[np.float32], where: Filter, limit: int, ids: Sequence[str]) -> Nearest:
        """Find the nearest chunks, best first, and compare those named, too, in one call that reads no chunk."""
        requests = [_nearest(vector, condition(where), limit)]
        if ids:
            requests.append(_nearest(vector, with_ids(where.scope, ids), len(ids), _EXACT))
        found, *others = await self._query(vector, requests)
        return Nearest(found, dict.fromkeys(ids) | {name: cosine for named in others for name, cosine in named})

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Read chunks by id; those that are not there are left out."""
        records = await self._records(scope, ids, CHUNK_FIELDS)
        return {str(record.id): to_chunk(str(record.id), record.payload or {}) for record in records}

    async def cosines(self, vector: NDArray[np.float32], scope: Scope, ids: Sequence[str]) -> Mapping[str, float]:
        """Compare a vector with chunks that another leg found, by id. Missing ones are left out."""
        if not ids:
            return {}
        (found,) = await self._query(vector, [_nearest(vector, with_ids(scope, ids), len(ids), _EXACT)])
        return dict(found)

    async def sketches(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, bytes]:
        """Read chunks' token sketches by id; chunks that have none, or are not there, are left out."""
        found = {str(r.id): to_sketch(r.payload or {}) for r in await self._records(scope, ids, [SKETCH_FIELD])}
        return {name: sketch for name, sketch in found.items() if sketch}

    async def embeddings(self, tenant: str, text_hashes: Sequence[str]) -> Mapping[str, Embedding]:
        """Find what texts were turned into before, within one tenant, by text hash. Missing ones are left out."""
        found: dict[str, Embedding] = {}
        wanted = list(dict.fromkeys(text_hashes))
        for start in range(0, len(wanted), _PAGE):
            where = models.Filter(must=[equals("tenant", tenant), any_of("text_hash", wanted[start : start + _PAGE])])
            async for page in self._scroll(where, ["text_hash", SKETCH_FIELD], with_vectors=True):
                for record in page:
                    payload, vector = record.payload or {}, np.asarray(record.vector, dtype=np.float32)
                    found[payload["text_hash"]] = Embedding(vector, to_sketch(payload))
        return found

    def scan(
        self, scope: Scope, path: str | None = None, *, known: Container[str] | None = None
    ) -> AsyncIterator[Sequence[ChunkRef]]:
        """Iterate in pages over all stored chunks of a workspace, or of one file; of `known` ones, over their ids."""
        must = in_scope(scope)
        if path is not None:
            must.append(equals("path", path))
        scroll = partial(self._scroll, with_vectors=False)
        return refs(scroll, models.Filter(must=must), partial(with_ids, scope), known)

    async def count(self) -> int:
        """Count the stored chunks of all scopes, about; those are included that no outline lists."""
        with translated(self._settings):
            return (await self._client.get_collection(self._collection)).points_count or 0

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _query(
        self, vector: NDArray[np.float32], requests: list[models.QueryRequest]
    ) -> list[list[tuple[str, float]]]:
        """Ask several things at once: ids and cosines of each, best first.

        By the client's stub: the client's own method makes a validated object of each hit, which takes ten times as
        long as to read the two values.
        """
        self._check(vector, "the query")
        batch = wire.QueryBatchPoints(
            collection_name=self._collection,
            query_points=[RestToGrpc.convert_query_request(request, self._collection) for request in requests],
            read_consistency=RestToGrpc.convert_read_consistency(self._consistency) if self._consistency else None,
            timeout=self._settings.timeout,
        )
        with translated(self._settings):
            answer = await self._client.grpc_points.QueryBatch(batch, timeout=self._settings.timeout)
        return [[(hit.id.uuid, hit.score) for hit in found.result] for found in answer.result]

    async def _records(self, scope: Scope, ids: Sequence[str], fields: list[str]) -> list[models.Record]:
        """Read fields of chunks that are there, by id."""
        if not ids:
            return []
        pages = self._scroll(with_ids(scope, ids), fields, with_vectors=False)
        return [record async for page in pages for record in page]

    async def _scroll(
        self, where: models.Filter, fields: list[str], *, with_vectors: bool
    ) -> AsyncIterator[list[models.Record]]:
        offset: PointId | None = None
        while True:
            with translated(self._settings):
                page, offset = await self._client.scroll(
                    self._collection,
                    where,
                    limit=_PAGE,
                    offset=offset,
                    with_payload=fields or False,
                    with_vectors=with_vectors,
                    consistency=self._consistency,
                    timeout=self._settings.timeout,
                )
            if page:
                yield page
            if offset is None:
                return

    def _check(self, vector: NDArray[np.float32], what: str) -> None:
        if vector.shape != (self._dimensions,) or not np.isfinite(vector).all():
            raise InvalidInputError(
                f"the vector of {what} has shape {vector.shape} or holds a value that is no number: the index needs "
                f"{self._dimensions} finite numbers, so ask the embedder that the generation was built with",
            )


def _nearest(
    vector: NDArray[np.float32], where: models.Filter, limit: int, params: models.SearchParams | None = None
) -> models.QueryRequest:
    return models.QueryRequest(query=vector.tolist(), filter=where, params=params, limit=limit, with_payload=False)


async def drop_vectors(settings: QdrantSettings, collection: str) -> None:
    """Remove a collection with all that it holds; nothing where there is none."""
    client = connect(settings)
    try:
        with translated(settings):
            if await client.collection_exists(collection):
                await client.delete_collection(collection, timeout=settings.timeout)
    finally:
        await client.close()
