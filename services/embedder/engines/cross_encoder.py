"""The cross-encoder on sentence-transformers. Needs the extra `torch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import ConfigError, ModelError
from services.embedder.engines.sentence_transformers import NEEDS_TORCH


@dataclass(frozen=True, slots=True)
class Pair(Sequence[int]):
    """Token ids of a query and a text; `fields` is what the tokenizer made of them: ids, types, mask."""

    fields: dict[str, list[int]]

    def __len__(self) -> int:
        return len(self.fields["input_ids"])

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        return self.fields["input_ids"][index]


class CrossEncoderReranker:
    """A CrossEncoder with one output."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401  (a CrossEncoder has no types here: it is an extra)
        self._model = model.eval()
        # sentence-transformers 5.1 has other names for them, and warns of those since.
        new = hasattr(model, "transformers_model")
        self._network = model.transformers_model if new else model.model
        longest = model.max_seq_length if new else model.max_length
        self._longest = min(longest or model.tokenizer.model_max_length, model.tokenizer.model_max_length)

    @classmethod
    def load(cls, place: str, device: str) -> CrossEncoderReranker:
        """Load a model of a hub or a local folder. Raises ConfigError where torch is missing, ModelError."""
        try:
            import torch  # noqa: PLC0415  (an extra)
            from sentence_transformers import CrossEncoder  # noqa: PLC0415  (an extra)
        except ImportError:
            raise ConfigError(f"a cross-encoder {NEEDS_TORCH}") from None
        if device == "cpu":
            torch.set_num_threads(1)  # the lane's threads run side by side instead
        try:
            model = CrossEncoder(place, device=device)
        except Exception as error:  # whatever transformers and the hub's client raise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(f"{place} can't be loaded as a cross-encoder: {reason}") from error
        if model.num_labels != 1:
            raise ModelError(f"{place} has {model.num_labels} outputs; a reranker has one")
        return cls(model)

    def ids(self, query: str, texts: Sequence[str]) -> list[Pair]:
        """Tokenise pairs. Those longer than the model's window are cut, the longer side first."""
        tokenizer = self._model.tokenizer
        encoded = tokenizer([query] * len(texts), list(texts), truncation=True, max_length=self._longest)
        return [Pair({name: rows[index] for name, rows in encoded.items()}) for index in range(len(texts))]

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Score pairs that `ids` gave, 0 to 1 each; shape (pairs, 1)."""
        import torch  # noqa: PLC0415  (an extra)

        pairs = [pair.fields for pair in batch if isinstance(pair, Pair)]
        features = self._model.tokenizer.pad(pairs, return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            scores = torch.sigmoid(self._network(**features).logits.float())
        found: NDArray[np.float32] = scores.cpu().numpy()
        return found
