"""The records of generations, as both registries keep them."""

from __future__ import annotations

from dataclasses import asdict, replace

import orjson

from memoryd.domain.generations import Generation, GenerationState, Progress
from memoryd.domain.queries import ModelInfo


def encode_generation(generation: Generation) -> bytes:
    """Write a record without its entry, which the registries keep beside it.

    Nor does it hold the model's scoring, which may change while the generation stays: the model itself tells it.
    """
    fields = asdict(replace(generation, entry=0))
    del fields["model"]["scoring"]
    return orjson.dumps(fields)


def decode_generation(body: bytes, entry: int) -> Generation:
    """Read what `encode_generation` wrote."""
    fields = orjson.loads(body)
    fields |= {
        "model": ModelInfo(**fields["model"]),
        "state": GenerationState(fields["state"]),
        "entry": entry,
    }
    return Generation(**fields)


def encode_progress(progress: Progress) -> bytes:
    """Write a report."""
    return orjson.dumps(asdict(progress))


def decode_progress(body: bytes) -> Progress:
    """Read what `encode_progress` wrote."""
    return Progress(**orjson.loads(body))
