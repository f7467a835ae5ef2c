"""Qdrant's wire format in the terms of qdrant-edge, as far as our adapter uses it; the rest raises ValueError."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import qdrant_edge as edge
from qdrant_client import grpc as wire
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc

_SCHEMA_TYPES = {
    edge.PayloadSchemaType.Keyword: wire.PayloadSchemaType.Keyword,
    edge.PayloadSchemaType.Integer: wire.PayloadSchemaType.Integer,
    edge.PayloadSchemaType.Datetime: wire.PayloadSchemaType.Datetime,
}


def shard_config(request: wire.CreateCollection) -> edge.EdgeConfig:
    """Translate the vectors' length and their quantisation. No graph is built, so its settings don't count."""
    params = request.vectors_config.params
    if params.distance != wire.Distance.Cosine:
        message = "only cosine is served here"
        raise ValueError(message)
    int8 = edge.ScalarQuantizationConfig(edge.ScalarType.Int8)
    return edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(size=params.size, distance=edge.Distance.Cosine),
        quantization_config=int8 if request.quantization_config.HasField("scalar") else None,
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=1 << 40),
    )


def collection_info(request: wire.CreateCollection, shard: edge.EdgeShard) -> wire.CollectionInfo:
    """Describe a collection."""
    info = shard.info()
    hnsw = wire.HnswConfigDiff(m=16, ef_construct=100, full_scan_threshold=10_000)  # Qdrant's defaults
    hnsw.MergeFrom(request.hnsw_config)
    params = wire.CollectionParams(
        shard_number=1,
        vectors_config=request.vectors_config,
        replication_factor=request.replication_factor,
        write_consistency_factor=request.write_consistency_factor,
    )
    return wire.CollectionInfo(
        status=wire.CollectionStatus.Green,
        optimizer_status=wire.OptimizerStatus(ok=True),
        segments_count=info.segments_count,
        points_count=info.points_count,
        config=wire.CollectionConfig(
            params=params,
            hnsw_config=hnsw,
            optimizer_config=wire.OptimizersConfigDiff(
                deleted_threshold=0.2, vacuum_min_vector_number=1_000, default_segment_number=0, flush_interval_sec=5
            ),
            wal_config=wire.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0),
            quantization_config=request.quantization_config if request.HasField("quantization_config") else None,
        ),
        payload_schema={
            field: wire.PayloadSchemaInfo(data_type=_SCHEMA_TYPES[index.data_type])
            for field, index in info.payload_schema.items()
        },
    )


def field_index(params: wire.PayloadIndexParams) -> Any:  # noqa: ANN401  (one of three classes without a common one)
    """Translate the parameters of a payload index."""
    match params.WhichOneof("index_params"):
        case "keyword_index_params":
            keyword = params.keyword_index_params
            return edge.KeywordIndexParams(is_tenant=keyword.is_tenant, prefix=keyword.HasField("prefix"))
        case "integer_index_params":
            integer = params.integer_index_params
            return edge.IntegerIndexParams(lookup=integer.lookup, range=integer.range)
        case "datetime_index_params":
            return edge.DatetimeIndexParams()
        case other:
            message = f"no index of the kind {other} is served here"
            raise ValueError(message)


def point(sent: wire.PointStruct) -> edge.Point:
    """Translate a point."""
    return edge.Point(sent.id.uuid, list(sent.vectors.vector.dense.data), GrpcToRest.convert_payload(sent.payload))


def retrieved(record: edge.Record) -> wire.RetrievedPoint:
    """Translate what a scroll found."""
    vector: Any = record.vector
    return wire.RetrievedPoint(
        id=wire.PointId(uuid=str(record.id)),
        payload=RestToGrpc.convert_payload(record.payload or {}),
        vectors=None
        if vector is None
        else wire.VectorsOutput(vector=wire.VectorOutput(dense=wire.DenseVector(data=vector))),
    )


def scored(hit: edge.ScoredPoint) -> wire.ScoredPoint:
    """Translate what a query found."""
    return wire.ScoredPoint(
        id=wire.PointId(uuid=str(hit.id)),
        payload=RestToGrpc.convert_payload(hit.payload) if hit.payload else None,
        score=hit.score,
        version=hit.version,
    )


def with_payload(selector: wire.WithPayloadSelector) -> bool | list[str]:
    """Translate which fields of a payload are wanted."""
    if selector.WhichOneof("selector_options") == "include":
        return list(selector.include.fields)
    return selector.enable


def condition(sent: wire.Filter) -> edge.Filter:
    """Translate a filter."""
    if sent.must_not or sent.HasField("min_should"):
        message = "neither must_not nor min_should is served here"
        raise ValueError(message)
    return edge.Filter(must=_conditions(sent.must), should=_conditions(sent.should))


def _conditions(conditions: Sequence[wire.Condition]) -> list[Any] | None:
    return [_condition(each) for each in conditions] or None


def _condition(sent: wire.Condition) -> Any:  # noqa: ANN401  (the engine's conditions have no common class)
    match sent.WhichOneof("condition_one_of"):
        case "filter":
            return condition(sent.filter)
        case "has_id":
            return edge.HasIdCondition({each.uuid for each in sent.has_id.has_id})
        case "is_empty":
            return edge.IsEmptyCondition(sent.is_empty.key)
        case "field" if sent.field.HasField("datetime_range"):
            return edge.FieldCondition(sent.field.key, range=_dates(sent.field.datetime_range))
        case "field" if sent.field.HasField("match"):
            return edge.FieldCondition(sent.field.key, match=_match(sent.field.match))
        case _:
            message = f"no condition like {sent} is served here"
            raise ValueError(message)


def _dates(sent: wire.DatetimeRange) -> edge.RangeDateTime:
    return edge.RangeDateTime(
        gte=sent.gte.ToDatetime(UTC).isoformat() if sent.HasField("gte") else None,
        lte=sent.lte.ToDatetime(UTC).isoformat() if sent.HasField("lte") else None,
    )


def _match(sent: wire.Match) -> Any:  # noqa: ANN401  (as `_condition`)
    match sent.WhichOneof("match_value"):
        case "keyword":
            return edge.MatchValue(sent.keyword)
        case "integer":
            return edge.MatchValue(sent.integer)
        case "keywords":
            return edge.MatchAny(list(sent.keywords.strings))
        case "prefix":
            return edge.MatchPrefix(sent.prefix)
        case other:
            message = f"no match by {other} is served here"
            raise ValueError(message)
