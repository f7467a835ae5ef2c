"""Generations: one complete set of indexes each, which fits one model and the versions of chunker and analyzer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from memoryd.domain.chunking import CHUNKER_VERSION
from memoryd.domain.chunks import RECORD_VERSION
from memoryd.domain.queries import ModelInfo
from memoryd.domain.sessions.redaction import REDACTION_VERSION
from memoryd.domain.sketches import SKETCH_VERSION
from memoryd.domain.text import ANALYZER_VERSION

VERSIONS: Mapping[str, str] = {
    "chunker": CHUNKER_VERSION,
    "analyzer": ANALYZER_VERSION,
    "sketch": SKETCH_VERSION,
    "redaction": REDACTION_VERSION,
    "record": RECORD_VERSION,
}
"""What beside the model decides what is stored. Another value of any of them begins another generation."""


class GenerationState(StrEnum):
    """Where a generation is in its life."""

    BUILDING = "building"  # has never held all that the file log holds
    READY = "ready"  # held it once, and is kept up to date: `current` may point to it
    DROPPING = "dropping"  # given up: nobody opens it any more, and its parts are being removed


@dataclass(frozen=True, slots=True)
class Generation:
    """The record of a generation.

    Attributes:
        id: see `generation_id`.
        model: the model whose vectors it holds.
        created: when it was begun, Unix seconds.
        state: where it is in its life.
        versions: see `VERSIONS`, as they were when it was begun.
        origin: how its model is loaded, for the process that does it; empty where the model is a service of its own.
        retired: since when nobody has wanted it, Unix seconds; None while it is the current or the coming one.
        entry: the record's own revision, for compare-and-set; 0 before it is put.
    """

    id: str
    model: ModelInfo
    created: float
    state: GenerationState = GenerationState.BUILDING
    versions: Mapping[str, str] = field(default_factory=lambda: VERSIONS)
    origin: str = ""
    retired: float | None = None
    entry: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a generation is, over all workspaces.

    Attributes:
        files: states in the file log.
        pending: those that are not yet in this generation's indexes.
        chunks: chunks stored.
        eta: seconds until nothing is pending, as far as can be told; None where it can't.
        problem: why it does not get on; empty where it does.
        at: when this was found, Unix seconds.
    """

    files: int
    pending: int
    chunks: int
    eta: float | None
    problem: str
    at: float

    @property
    def done(self) -> float:
        """The share of the files that are indexed, 0 to 1."""
        return 1.0 if self.files == 0 else max(0.0, 1 - self.pending / self.files)


def generation_id(model: ModelInfo) -> str:
    """Name the generation: any change of what decides what is stored gives another one, so nothing is ever mixed."""
    parts = (model.fingerprint, str(model.dimensions), f"sketches {model.sketches}", *VERSIONS.values())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def consumer_name(name: str, generation: str) -> str:
    """Name a generation's durable consumer of the file log: the indexer settles by it, search counts by it."""
    return f"{name}-{generation}"
