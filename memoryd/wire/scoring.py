"""Scoring ↔ its message: the constants of a model's scores."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from memoryd.domain.scoring import Calibration, Scoring, Weights
from memoryd.v1 import embedder_pb2


def scoring_to(scoring: Scoring) -> embedder_pb2.Scoring:
    """Write constants down."""
    parts: dict[str, Any] = asdict(scoring)
    weights = embedder_pb2.Scoring.Weights(**parts.pop("weights"))
    calibrations = {name: embedder_pb2.Scoring.Calibration(**values) for name, values in parts.items()}
    return embedder_pb2.Scoring(weights=weights, **calibrations)


def scoring_from(message: embedder_pb2.Scoring) -> Scoring:
    """Read constants. Raises ValueError where they are none."""
    parts: dict[str, Any] = {
        part.name: _read(Weights if part.name == "weights" else Calibration, getattr(message, part.name))
        for part in fields(Scoring)
    }
    return Scoring(**parts)


def _read(kind: type[Weights | Calibration], message: Any) -> Weights | Calibration:  # noqa: ANN401  (either of two)
    return kind(**{field.name: getattr(message, field.name) for field in fields(kind)})
