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
from memoryd.models.token_mean import compute_mean, mean_in, mean_of, stored_mean
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import TextKind
from services.embedder.engines.engine import padded
from services.embedder.settings import EmbedderSettings

NEEDS_TORCH = "needs the extra `torch`: pip install 'memoryd[torch]'"
# For a model that nothing is known of: a guess, to be replaced by the settings `unrelated` and `related`.
_UNRELATED, _RELATED = 0.1, 0.7


class SentenceTransformersEngine:
    """A SentenceTransformer, from token ids to vectors."""

    def __init__(
        self,
        model: Any,  # noqa: ANN401  (see below)
        settings: EmbedderSettings,
        spec: ModelSpec | None = None,
        *,
        prepared: Path | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            model: a `sentence_transformers.SentenceTransformer`, which has no types here: it is an extra.
            settings: prompts and cosines where they differ from the model's own.
            spec: what is known of the model.
            prepared: the folder that `memoryd model prepare` made of it, which may keep its mean token vector.
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
        fingerprint = _fingerprint(model, tokenizer, (query, passage))
        dimensions, window = model.encode(["x"], show_progress_bar=False).shape[1], int(model.max_seq_length)
        if spec:  # a repository may name a longer one than the model was trained on, or than fits into memory
            window = min(window, spec.window)
        self._token_mean: NDArray[np.float32] | None = None
        if self._gives_tokens(dimensions):
            place = mean_in(prepared) if prepared else mean_of(fingerprint)
            self._token_mean = stored_mean(place, dimensions, lambda: self._compute_mean(window))
        self._info = ModelInfo(
            name=spec.name if spec else settings.model,
            fingerprint=fingerprint,
            dimensions=dimensions,
            window=window,
            unrelated=_UNRELATED if unrelated is None else unrelated,
            related=_RELATED if related is None else related,
            engine="sentence-transformers",
            sketches=self._token_mean is not None,
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
            prepared = Path(place) if (Path(place) / MANIFEST_FILE).is_file() else None
            return cls(model, settings, spec, prepared=prepared)
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

    @property
    def token_mean(self) -> NDArray[np.float32] | None:
        """Give the model's mean token vector; None where its modules give no token vectors, or of another length."""
        return self._token_mean

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Compute vectors from token ids."""
        return _normalised(self._forward(batch)["sentence_embedding"])

    def encode_tokens(self, batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Compute vectors and token vectors from token ids."""
        features = self._forward(batch)
        return _normalised(features["sentence_embedding"]), _on_cpu(features["token_embeddings"])

    def _forward(self, batch: Sequence[Sequence[int]]) -> Any:  # noqa: ANN401  (tensors by name)
        import torch  # noqa: PLC0415  (an extra)

        ids, mask = (torch.from_numpy(array).to(self._model.device) for array in padded(batch))
        with torch.inference_mode():
            return self._model({"input_ids": ids, "attention_mask": mask})

    def _gives_tokens(self, dimensions: int) -> bool:
        """Whether there is a vector a token, as long as a text's: what is stored of both is checked by one length."""
        (ids,) = self._tokenizer.ids(["x"], TextKind.PASSAGE)
        tokens = self._forward([ids]).get("token_embeddings")
        return tokens is not None and tuple(tokens.shape) == (1, len(ids), dimensions)

    def _compute_mean(self, window: int) -> NDArray[np.float32]:
        return compute_mean(self._tokenizer, window, lambda ids: self.encode_tokens([ids])[1][0])


def _normalised(pooled: Any) -> NDArray[np.float32]:  # noqa: ANN401  (a tensor)
    import torch  # noqa: PLC0415  (an extra)

    return _on_cpu(torch.nn.functional.normalize(pooled.float(), dim=-1))


def _on_cpu(tensor: Any) -> NDArray[np.float32]:  # noqa: ANN401  (as above)
    array: NDArray[np.float32] = tensor.float().cpu().numpy()
    return array


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
