"""A model's tokenizer with its prompts: token ids for the engines, counts for the chunker, weights for the search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import InvalidInputError
from memoryd.models.fast_tokenizer import FastEncoder
from memoryd.models.sentence_piece import SentencePieceEncoder
from memoryd.ports import TextKind

_WORDS = 16_384  # whose weights are kept: some 3 MB


class Encoder(Protocol):
    """What turns texts into ids.

    Attributes:
        costs: minus the log-probability of each id, in nats, at least 0; shape (ids,).
    """

    costs: NDArray[np.float64]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each id's tokens belong into a sketch, shape (ids,)."""
        ...

    def encode(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        """Give each text's ids, with the special ids around them where asked for."""
        ...

    def dump(self) -> bytes:
        """Give the file that it was read from."""
        ...


class ModelTokenizer:
    """The tokenizer port, and ids for the engines. Methods may be called from any thread; they let others run."""

    def __init__(self, encoder: Encoder, query_prompt: str, passage_prompt: str) -> None:
        self._encoder = encoder
        self._prompts = {TextKind.QUERY: query_prompt, TextKind.PASSAGE: passage_prompt}
        self._prompt_ids: dict[TextKind, list[int]] = {}
        self._weight = lru_cache(_WORDS)(self._weigh)

    @classmethod
    def parse(cls, file: bytes, query_prompt: str, passage_prompt: str) -> ModelTokenizer:
        """Read what `dump` has given. Raises ValueError for anything else."""
        encoder = FastEncoder.parse(file) if file.lstrip().startswith(b"{") else SentencePieceEncoder(file)
        return cls(encoder, query_prompt, passage_prompt)

    def dump(self) -> bytes:
        """Give the tokenizer as its file; the prompts are not in it."""
        return self._encoder.dump()

    def prompt(self, kind: TextKind) -> str:
        """Give what stands before every text of a kind."""
        return self._prompts[kind]

    def ids(self, texts: Sequence[str], kind: TextKind) -> list[list[int]]:
        """Give each embedding input's token ids: prompt, text and special tokens, however long.

        Raises InvalidInputError that names the text where one is blank or is not Unicode.
        """
        for index, text in enumerate(texts):
            _check(index, text)
        prompt = self._prompts[kind]
        return self._encoder.encode([prompt + text for text in texts], special=True)

    def kept(self, ids: Sequence[int], kind: TextKind) -> NDArray[np.bool_]:
        """Tell which tokens of an embedding input belong into a sketch, shape (tokens,): none of prompt or special."""
        if kind not in self._prompt_ids:
            (self._prompt_ids[kind],) = self._encoder.encode([self._prompts[kind]], special=True)
        mask: NDArray[np.bool_] = self._encoder.kept[list(ids)]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(ids, self._prompt_ids[kind], strict=False))
        mask[: sum(1 for _ in same)] = False
        return mask

    def rarity(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Give the cost of each token, in nats, shape (tokens,)."""
        costs: NDArray[np.float64] = self._encoder.costs[list(ids)]
        return costs

    def count(self, texts: Sequence[str], kind: TextKind = TextKind.PASSAGE) -> list[int]:
        """Count each text's tokens, prompt and special tokens included. A lone surrogate counts as U+FFFD."""
        prompt = self._prompts[kind]
        return [len(ids) for ids in self._encoder.encode([prompt + _encodable(text) for text in texts], special=True)]

    def weights(self, words: Sequence[str]) -> list[float]:
        """Sum the costs of each word's pieces: minus their unigram log-probabilities, in nats."""
        return [self._weight(word) for word in words]

    def _weigh(self, word: str) -> float:
        """Weigh one word by itself: a list of them starts a thread, see `SentencePieceEncoder`."""
        (ids,) = self._encoder.encode([_encodable(word)], special=False)
        return float(self._encoder.costs[ids].sum())


def _check(index: int, text: str) -> None:
    if not text or text.isspace():
        raise InvalidInputError(f"text {index} is blank: leave it out", index=str(index))
    utf8(index, text)


def utf8(index: int, text: str) -> bytes:
    """Encode the text of this index in its call. Raises InvalidInputError that names it where it is not Unicode."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"text {index} is not Unicode: it has a lone surrogate at character {error.start}. "
            "Decode it with replacement.",
            index=str(index),
        ) from error


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode() if not text.isascii() else text
