"""Tokenizers of any kind, run by the library `tokenizers`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memoryd.domain.sketches import is_kept
from memoryd.models.sentence_piece import UNKNOWN_PENALTY


class FastEncoder:
    """Ids of texts by a `tokenizers.Tokenizer`, which it sets up never to cut or pad."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # One thread is plenty beside a model, and a query must not wait until a shared pool is done with bulk texts.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.costs = piece_costs(tokenizer)

    @classmethod
    def parse(cls, file: bytes) -> FastEncoder:
        """Read a tokenizer.json. Raises ValueError for anything else."""
        try:
            return cls(Tokenizer.from_buffer(file))
        except Exception as error:  # the library raises no class of its own
            raise ValueError("no tokenizer.json") from error

    def encode(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        """Give each text's ids, with the special ids around them where asked for."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=special)
        return [encoding.ids for encoding in encodings]

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each id's tokens belong into a sketch: known pieces with a letter or a digit."""
        tokenizer = self._tokenizer
        special = {position for position, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        model: dict[str, Any] = orjson.loads(tokenizer.to_str())["model"]
        left_out = special | {model.get("unk_id"), tokenizer.token_to_id(model.get("unk_token") or "")}
        pieces = [tokenizer.id_to_token(position) or "" for position in range(tokenizer.get_vocab_size())]
        return np.array([is_kept(piece) and position not in left_out for position, piece in enumerate(pieces)])

    def dump(self) -> bytes:
        """Give the tokenizer as its file, tokenizer.json."""
        return self._tokenizer.to_str().encode()


def piece_costs(tokenizer: Tokenizer) -> NDArray[np.float64]:
    """Give minus the log-probability of each token id, in nats, at least 0.

    A tokenizer without probabilities (WordPiece, BPE) has its ids in order of frequency, more or less; there Zipf's law
    stands in: the probability of the piece of rank r is 1 / (r · ln n).
    """
    model: dict[str, Any] = orjson.loads(tokenizer.to_str())["model"]
    if model["type"] != "Unigram":
        size = tokenizer.get_vocab_size()
        return np.log(np.arange(1, size + 1)) + math.log(max(1.0, math.log(size)))
    costs = np.zeros(tokenizer.get_vocab_size())
    scores = np.array([score for _, score in model["vocab"]])
    costs[: len(scores)] = np.maximum(-scores, 0)
    costs[model["unk_id"]] = costs.max() + UNKNOWN_PENALTY
    return costs
