"""The collection of a generation."""

from __future__ import annotations

import grpc
from qdrant_client import AsyncQdrantClient, models

from memoryd.adapters.qdrant.points import INDEXES
from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.errors import DataError

# Qdrant's default number of links, spent within each tenant instead of over all of them.
_TENANT_GRAPHS = models.HnswConfigDiff(m=0, payload_m=16)
_INT8 = models.ScalarQuantization(
    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, memory=models.Memory.PINNED)
)


async def ensure_collection(client: AsyncQdrantClient, name: str, dimensions: int, settings: QdrantSettings) -> None:
    """Create what is missing of a collection; several processes may do so at once.

    Raises DataError where there is one for vectors of another length.
    """
    if not await client.collection_exists(name):
        try:
            await _create(client, name, dimensions, settings)
        except grpc.aio.AioRpcError:
            if not await client.collection_exists(name):  # otherwise another process was faster
                raise
    info = await client.get_collection(name)
    vectors = info.config.params.vectors
    stored = vectors.size if isinstance(vectors, models.VectorParams) else None
    if stored != dimensions:
        raise DataError(
            f"collection {name} of Qdrant at {settings.url} holds vectors of {stored} numbers, the model gives "
            f"{dimensions}: use the model that the generation was built with, or delete the collection"
        )
    for field, schema in INDEXES.items():
        if field not in info.payload_schema:
            await client.create_payload_index(name, field, schema)


async def _create(client: AsyncQdrantClient, name: str, dimensions: int, settings: QdrantSettings) -> None:
    memory = models.Memory.COLD if settings.quantize else models.Memory.CACHED
    await client.create_collection(
        name,
        models.VectorParams(size=dimensions, distance=models.Distance.COSINE, memory=memory),
        hnsw_config=_TENANT_GRAPHS,
        quantization_config=_INT8 if settings.quantize else None,
        replication_factor=settings.replication,
        write_consistency_factor=settings.replication // 2 + 1,
        timeout=settings.timeout,
    )
