"""ModelInfo ↔ Model; what only search needs travels beside the message."""

from __future__ import annotations

from memoryd.domain.queries import ModelInfo
from memoryd.domain.scoring import Scoring
from memoryd.v1 import common_pb2


def model_to(model: ModelInfo) -> common_pb2.Model:
    """Write a model down."""
    return common_pb2.Model(
        name=model.name,
        fingerprint=model.fingerprint,
        dimensions=model.dimensions,
        window=model.window,
        engine=model.engine,
        provider=model.provider,
    )


def model_from(
    model: common_pb2.Model,
    unrelated: float,
    related: float,
    *,
    sketches: bool = False,
    reranks: bool = False,
    scoring: Scoring | None = None,
) -> ModelInfo:
    """Read a model; see `ModelInfo` for what travels beside the message."""
    return ModelInfo(
        name=model.name,
        fingerprint=model.fingerprint,
        dimensions=model.dimensions,
        window=model.window,
        unrelated=unrelated,
        related=related,
        engine=model.engine,
        provider=model.provider,
        sketches=sketches,
        reranks=reranks,
        scoring=scoring,
    )
