"""The engine on ONNX Runtime: the default; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from memoryd.domain.queries import ModelInfo
from memoryd.errors import ConfigError, ModelError
from memoryd.models.encoder import MODEL_FILE
from memoryd.models.folder import PREPARE, PreparedModel, open_model
from memoryd.models.progress import Progress, no_progress
from memoryd.models.spec import Variant
from memoryd.models.token_mean import compute_mean, mean_in, stored_mean
from memoryd.models.tokenizer import ModelTokenizer
from services.embedder.engines.engine import padded


class OnnxEngine:
    """A prepared model.

    One session without threads of its own, run by as many callers' threads at a time as there are: the weights are in
    memory once, and no batch waits at the barriers between threads that share an operator. Measured on 2 cores, 39,144
    tokens in batches of 1,024, a query every 0.1 s (alone: p50 5.6 ms, p95 7.9 ms):

    ================================= ================= ============ ============
    bulk                              tokens/CPU second p50 of query p95 of query
    ================================= ================= ============ ============
    2 threads, this session           2,957             21.3 ms      63.2 ms
    2 threads, this session, nice 10  3,016             5.6 ms       17.0 ms
    1 caller, a session of 2 threads  2,512             23.6 ms      49.4 ms
    ================================= ================= ============ ============

    A second thread for a query alone gains nothing, either (`python -m bench.embedder threads`, 8 to 20 tokens,
    real-time priority on 2 cores): p50 5.2 ms by one thread, 6.0 by two, 6.2 by two that spin; beside a process that
    keeps a core busy p95 6.2, 6.2 and 29 ms.
    """

    def __init__(
        self,
        model: PreparedModel,
        device: str = "cpu",
        *,
        unrelated: float | None = None,
        related: float | None = None,
    ) -> None:
        """Load a model.

        Args:
            model: an opened folder.
            device: what computes.
            unrelated: typical cosine of unrelated texts; None: what is known of the model.
            related: typical cosine of a question and its answer; None likewise.
        """
        manifest = model.manifest
        self._tokenizer = model.tokenizer()
        self._session = _open_session(model.folder / MODEL_FILE, _providers(device))
        self._info = ModelInfo(
            name=manifest.name,
            fingerprint=manifest.fingerprint,
            dimensions=manifest.dimensions,
            window=manifest.window,
            unrelated=manifest.unrelated if unrelated is None else unrelated,
            related=manifest.related if related is None else related,
            engine=f"onnx {manifest.variant}",
            sketches=True,
        )
        self._token_mean = stored_mean(mean_in(model.folder), manifest.dimensions, self._compute_mean)

    @classmethod
    def load(
        cls,
        folder: Path,
        device: str = "cpu",
        *,
        unrelated: float | None = None,
        related: float | None = None,
        progress: Progress = no_progress,
    ) -> OnnxEngine:
        """Load a folder that `memoryd model prepare` made. Raises ModelError, ConfigError for a device of no use."""
        model = open_model(folder, progress)
        if model.manifest.variant is Variant.TORCH:
            raise ModelError(f"{folder} is prepared for sentence-transformers, not for the engine onnx: {PREPARE}")
        progress("load into ONNX Runtime", 0, 0)
        return cls(model, device, unrelated=unrelated, related=related)

    @property
    def info(self) -> ModelInfo:
        """Describe the model."""
        return self._info

    @property
    def token_mean(self) -> NDArray[np.float32]:
        """Give the model's mean token vector."""
        return self._token_mean

    @property
    def tokenizer(self) -> ModelTokenizer:
        """Give the model's tokenizer."""
        return self._tokenizer

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Compute vectors from token ids."""
        ids, mask = padded(batch)
        (vectors,) = self._session.run(["pooled"], {"input_ids": ids, "attention_mask": mask})
        pooled: NDArray[np.float32] = vectors
        return pooled

    def encode_tokens(self, batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Compute vectors and token vectors from token ids."""
        ids, mask = padded(batch)
        pooled, tokens = self._session.run(["pooled", "token_embeddings"], {"input_ids": ids, "attention_mask": mask})
        return pooled, tokens

    def _compute_mean(self) -> NDArray[np.float32]:
        return compute_mean(self._tokenizer, self._info.window, lambda ids: self.encode_tokens([ids])[1][0])


def _providers(device: str) -> list[str | tuple[str, dict[str, int]]]:
    if device == "cpu":
        return ["CPUExecutionProvider"]
    name, _, number = device.partition(":")
    if name != "cuda" or "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise ConfigError(
            f"this ONNX Runtime can't use the device {device}: install onnxruntime-gpu in place of onnxruntime (for "
            "cuda), or set MEMORYD_EMBEDDER_DEVICE=cpu"
        )
    return [("CUDAExecutionProvider", {"device_id": int(number or 0)}), "CPUExecutionProvider"]


def _open_session(path: Path, providers: Sequence[str | tuple[str, dict[str, int]]]) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # it keeps a plan for every shape of batch, and each batch has another
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception as error:  # onnxruntime's errors have no base but Exception
        raise ModelError(f"{path} can't be loaded by ONNX Runtime: {PREPARE}") from error
