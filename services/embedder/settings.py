"""Settings of the embedder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.models.spec import DEFAULT_MODEL, Variant
from services.embedder.remote.settings import OpenAISettings

_CPU_BATCH, _GPU_BATCH = 512, 16_384  # tokens


class EmbedderSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_EMBEDDER_ and its name in capitals. Times are in seconds."""

    # `model_` is pydantic's prefix; two of our fields begin with it.
    model_config = SettingsConfigDict(env_prefix="MEMORYD_EMBEDDER_", frozen=True, protected_namespaces=())

    engine: Literal["onnx", "sentence-transformers", "openai"] = Field(
        default="onnx",
        description="What runs the model; sentence-transformers needs the extra `torch`, openai is any provider with "
        "an OpenAI-compatible API, see MEMORYD_EMBEDDER_OPENAI_….",
    )
    fallback: Literal["", "openai"] = Field(
        default="",
        description="What serves instead where the engine can't be loaded, or fails and the provider is found to have "
        "the very same model; empty: nothing, searches are by text alone then.",
    )
    openai: OpenAISettings = Field(default_factory=OpenAISettings)
    model: str = Field(
        default=DEFAULT_MODEL,
        description="A prepared model, see `memoryd model list`; for sentence-transformers any hub model or folder.",
    )
    model_dir: Path | None = Field(
        default=None,
        description="The prepared model's folder; default: $MEMORYD_MODEL_DIR, else one in the user's cache home.",
    )
    variant: Literal[Variant.INT8, Variant.FP32] = Field(
        default=Variant.INT8, description="Which prepared variant the engine onnx loads by default."
    )
    query_prompt: str | None = Field(
        default=None, description="sentence-transformers: stands before every query; default: the model's own."
    )
    passage_prompt: str | None = Field(
        default=None, description="sentence-transformers: stands before every passage; default: the model's own."
    )
    unrelated: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Typical cosine of unrelated texts; default: the known model's, else .1.",
    )
    related: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Typical cosine of a question and its answer; default likewise, else .7.",
    )
    calibration: Path | None = Field(
        default=None,
        description="The file that `memoryd model calibrate` writes and the embedder reads; default: calibration.json "
        "in the model's folder, of a model without one in the user's cache home.",
    )
    device: str = Field(
        default="cpu",
        pattern=r"^(cpu|mps|cuda(:[0-9]+)?)$",
        description="cpu, cuda, cuda:1, … (onnx: needs onnxruntime-gpu in place of onnxruntime; sentence-transformers "
        "also takes mps).",
    )
    precision: Literal["fp32", "fp16", "bf16"] = Field(
        default="fp32",
        description="sentence-transformers: of weights and activations; a GPU is twice as fast with fp16 or bf16. "
        "Another precision is another model.",
    )
    cross_encoder: str = Field(
        default="", description="A hub model or local folder that Rerank runs (extra `torch`); empty: none."
    )
    bulk_threads: NonNegativeInt = Field(
        default=0, description="Threads of the bulk lane; 0: one a core, or 2 where a GPU computes."
    )
    bulk_nice: int = Field(
        default=10, ge=0, le=19, description="How far bulk threads give way to all others, queries first (Linux)."
    )
    # On one thread (41,745 tokens): 256: 3,850 tokens/s; 512: 3,700; 1,024: 3,490; 2,048: 3,090; 4,096: 2,790, and
    # each doubling takes more memory. Below 512 the fixed cost of a batch would show with faster models.
    batch_tokens: NonNegativeInt = Field(
        default=0, description="Most tokens of a batch, padding included; 0: 512, or 16,384 where a GPU computes."
    )
    queue_tokens: PositiveInt = Field(
        default=262_144, description="Most tokens that wait in a lane; what comes then is refused."
    )
    rerank_batch_tokens: PositiveInt = Field(
        default=1024, description="Most tokens of a batch of the cross-encoder, padding included."
    )
    rerank_queue_tokens: PositiveInt = Field(
        default=65_536, description="Most tokens that wait for the cross-encoder; what comes then is refused."
    )
    warm_up_timeout: PositiveFloat = Field(default=60.0, description="How long the first batch may take at start.")

    @property
    def batch(self) -> int:
        """Most tokens of a batch."""
        return self.batch_tokens or (_CPU_BATCH if self.device == "cpu" else _GPU_BATCH)

    @property
    def threads(self) -> int:
        """Threads of the bulk lane. Before a GPU: one that computes, one that forms the next batch."""
        # A container may be bound to fewer cores than there are.
        return self.bulk_threads or (len(os.sched_getaffinity(0)) if self.device == "cpu" else 2)
