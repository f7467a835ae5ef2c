"""A model's tokenizer with its prompts: token ids for the engines, counts for the chunker, weights for the search."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from memoryd.errors import InvalidInputError
from memoryd.ports import TextKind

# What SentencePiece takes off the least likely piece's log-probability for a character that no piece has
# (kUnkPenalty in its unigram model).
_UNKNOWN_PENALTY = 10.0


class ModelTokenizer:
    """The tokenizer port, and ids for the engines. Methods may be called from any thread; they let others run."""

    def __init__(self, tokenizer: FastTokenizer, query_prompt: str, passage_prompt: str) -> None:
        # One thread is plenty beside a model, and a query must not wait until a shared pool is done with bulk texts.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._prompts = {TextKind.QUERY: query_prompt, TextKind.PASSAGE: passage_prompt}
        self._costs = piece_costs(tokenizer)

    def ids(self, texts: Sequence[str], kind: TextKind) -> list[list[int]]:
        """Give each embedding input's token ids: prompt, text and special tokens, however long.

        Raises InvalidInputError that names the text where one is blank or is not Unicode.
        """
        for index, text in enumerate(texts):
            _check(index, text)
        prompt = self._prompts[kind]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast([prompt + text for text in texts])]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Count each passage's tokens, prompt and special tokens included. A lone surrogate counts as U+FFFD."""
        prompt = self._prompts[TextKind.PASSAGE]
        inputs = [prompt + _encodable(text) for text in texts]
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(inputs)]

    def weights(self, words: Sequence[str]) -> list[float]:
        """Sum the costs of each word's pieces: minus their unigram log-probabilities, in nats."""
        encodings = self._tokenizer.encode_batch_fast([_encodable(word) for word in words], add_special_tokens=False)
        return [float(self._costs[encoding.ids].sum()) for encoding in encodings]


def piece_costs(tokenizer: FastTokenizer) -> NDArray[np.float64]:
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
    costs[model["unk_id"]] = costs.max() + _UNKNOWN_PENALTY
    return costs


def _check(index: int, text: str) -> None:
    if not text or text.isspace():
        raise InvalidInputError(f"text {index} is blank: leave it out", index=str(index))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"text {index} is not Unicode: it has a lone surrogate at character {error.start}. "
            "Decode it with replacement.",
            index=str(index),
        ) from error


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode() if not text.isascii() else text
