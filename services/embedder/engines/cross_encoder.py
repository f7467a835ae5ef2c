"""The cross-encoder on sentence-transformers. Needs the extra `torch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoryd.errors import ConfigError, ModelError
from services.embedder.engines.sentence_transformers import NEEDS_TORCH


class CrossEncoderReranker:
    """A CrossEncoder with one output."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401  (a CrossEncoder has no types here: it is an extra)
        self._model = model

    @classmethod
    def load(cls, place: str, device: str) -> CrossEncoderReranker:
        """Load a model of a hub or a local folder. Raises ConfigError where torch is missing, ModelError."""
        try:
            from sentence_transformers import CrossEncoder  # noqa: PLC0415  (an extra)
        except ImportError:
            raise ConfigError(f"a cross-encoder {NEEDS_TORCH}") from None
        try:
            model = CrossEncoder(place, device=device)
        except Exception as error:  # whatever transformers and the hub's client raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(f"{place} can't be loaded as a cross-encoder: {reason}") from error
        if model.num_labels != 1:
            raise ModelError(f"{place} has {model.num_labels} outputs; a reranker has one")
        return cls(model)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score each text against the query, 0 to 1. Pairs longer than the model's window are cut."""
        import torch  # noqa: PLC0415  (an extra)

        pairs = [(query, text) for text in texts]
        scores = self._model.predict(
            pairs, batch_size=len(pairs), activation_fn=torch.nn.Sigmoid(), show_progress_bar=False
        )
        return [float(score) for score in scores]
