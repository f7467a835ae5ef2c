"""The engine on sentence-transformers: any model of a hub or a local folder, on CPU or GPU. Needs the extra `torch`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memoryd.domain.queries import ModelInfo
from memoryd.errors import ConfigError, ModelError
from memoryd.models.fast_tokenizer import FastEncoder
from memoryd.models.folder import MANIFEST_FILE, PREPARE, open_model
from memoryd.models.spec import MODELS, ModelSpec, Variant, default_folder
from memoryd.models.tokenizer import ModelTokenizer
from services.embedder.engines.engine import padded
from services.embedder.settings import EmbedderSettings

NEEDS_TORCH = "needs the extra `torch`: pip install 'memoryd[torch]'"
# For a model that nothing is known of: a guess, to be replaced by the settings `unrelated` and `related`.
_UNRELATED, _RELATED = 0.1, 0.7


class SentenceTransformersEngine:
    """A SentenceTransformer, from token ids to vectors."""

    def __init__(self, model: Any, settings: EmbedderSettings, spec: ModelSpec | None = None) -> None:  # noqa: ANN401
        """Wrap a model.

        Args:
            model: a `sentence_transformers.SentenceTransformer`, which has no types here: it is an extra.
            settings: prompts and cosines where they differ from the model's own.
            spec: what is known of the model.
        """
        self._model = model.eval()
        own: dict[str, str] = model.prompts or {}
        query = _first(settings.query_prompt, own.get("query"), spec and spec.query_prompt) or ""
        passage = (
            _first(settings.passage_prompt, own.get("passage"), own.get("document"), spec and spec.passage_prompt) or ""
        )
        # A copy: the model's own is set up to truncate.
        tokenizer = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
        self._tokenizer = ModelTokenizer(FastEncoder(tokenizer), query, passage)
        unrelated = _first(settings.unrelated, spec and spec.unrelated)
        related = _first(settings.related, spec and spec.related)
        self._info = ModelInfo(
            name=spec.name if spec else settings.model,
            fingerprint=_fingerprint(model, tokenizer, (query, passage)),
            dimensions=model.encode(["x"], show_progress_bar=False).shape[1],
            window=int(model.max_seq_length),
            unrelated=_UNRELATED if unrelated is None else unrelated,
            related=_RELATED if related is None else related,
            engine="sentence-transformers",
        )

    @classmethod
    def load(cls, settings: EmbedderSettings) -> SentenceTransformersEngine:
        """Load the model that the settings name. Raises ConfigError where torch is missing, ModelError."""
        try:
            import torch  # noqa: PLC0415  (an extra)
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (an extra)
            from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415  (an extra)
        except ImportError:
            raise ConfigError(f"the engine sentence-transformers {NEEDS_TORCH}") from None
        spec = next((spec for spec in MODELS.values() if settings.model in {spec.name, spec.hub}), None)
        place = settings.model
        if settings.model_dir:
            place = _checked(settings.model_dir)
        elif spec and settings.model == spec.name:
            place = _checked(default_folder(spec, Variant.TORCH))
        disable_progress_bar()
        if settings.device == "cpu":
            torch.set_num_threads(1)  # the lanes' threads run side by side instead
        try:
            model = SentenceTransformer(place, device=settings.device)
            if settings.precision != "fp32":
                model = model.to(torch.float16 if settings.precision == "fp16" else torch.bfloat16)
            return cls(model, settings, spec)
        except Exception as error:  # whatever transformers and the hub's client raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(f"{place} can't be loaded by sentence-transformers: {reason}") from error

    @property
    def info(self) -> ModelInfo:
        """Describe the model."""
        return self._info

    @property
    def tokenizer(self) -> ModelTokenizer:
        """Give the model's tokenizer."""
        return self._tokenizer

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Compute vectors from token ids."""
        import torch  # noqa: PLC0415  (an extra)

        ids, mask = (torch.from_numpy(array).to(self._model.device) for array in padded(batch))
        with torch.inference_mode():
            pooled = self._model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"]
            vectors: NDArray[np.float32] = torch.nn.functional.normalize(pooled.float(), dim=-1).cpu().numpy()
        return vectors

    @property
    def token_mean(self) -> None:
        """Give none: this engine's models have no sketches yet."""

    def encode_tokens(self, batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Is never called, as there is no mean."""
        raise NotImplementedError


def _checked(folder: Path) -> str:
    """Verify a folder that `memoryd model prepare --variant torch` made; one of another making is taken as it is."""
    foreign = (folder / "modules.json").is_file() and not (folder / MANIFEST_FILE).exists()
    if not foreign and open_model(folder).manifest.variant is not Variant.TORCH:
        raise ModelError(f"{folder} is not prepared for sentence-transformers: {PREPARE} --variant torch")
    return str(folder)


def _fingerprint(model: Any, tokenizer: Tokenizer, prompts: tuple[str, str]) -> str:  # noqa: ANN401  (as in __init__)
    """Hash weights, tokenizer, prompts and what follows the encoder: pooling and the like."""
    import torch  # noqa: PLC0415  (an extra)

    digest = hashlib.sha256()
    modules: list[Any] = [
        [type(module).__name__, getattr(module, "get_config_dict", dict)()] for module in list(model)[1:]
    ]
    digest.update(json.dumps([prompts, modules], sort_keys=True, default=str).encode())
    digest.update(tokenizer.to_str().encode())
    for name, tensor in sorted(model.state_dict().items()):
        if ".pooler." in name:  # not used here, and random where the model is stored without
            continue
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:32]


def _first(*values: Any) -> Any:  # noqa: ANN401  (of any type)
    return next((value for value in values if value is not None), None)
