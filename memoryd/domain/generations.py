"""Which generation of indexes fits the model and the versions of chunker and analyzer."""

from __future__ import annotations

import hashlib

from memoryd.domain.chunking import CHUNKER_VERSION
from memoryd.domain.queries import ModelInfo
from memoryd.domain.text import ANALYZER_VERSION


def generation_id(model: ModelInfo) -> str:
    """Name the generation: any change of model, chunking or analysis gives another one, so nothing is ever mixed."""
    parts = (model.fingerprint, str(model.dimensions), CHUNKER_VERSION, ANALYZER_VERSION)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def consumer_name(name: str, generation: str) -> str:
    """Name a generation's durable consumer of the file log: the indexer settles by it, search counts by it."""
    return f"{name}-{generation}"
