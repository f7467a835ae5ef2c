"""Token sketches: one bit a dimension of each token's vector, kept at indexing, to compare a query with at search.

The encoder computes a vector for every token before it averages them. A query's tokens, in full precision, are each
matched with the nearest token of a chunk: late interaction (MaxSim of ColBERT, Khattab and Zaharia 2020), for a fetch
and a small matrix product instead of a model call.

All token vectors are centred on the model's mean token vector first. nDCG@10 of the match alone, on an agent's
workspace and on conversation turns, with multilingual-e5-small:

    not centred                                              .577 .477
    centred on the mean over pieces drawn by frequency       .668 .576
    centred on the mean over ten sentences                   .677 .575
    centred on the mean over 675 tokens of varied text       .677 .591
    centred on the mean over 8,000 tokens of notes           .691 .589
    the same in full precision                               .693 .593

A token that many of the candidates match tells them apart little, however rare it is elsewhere: it weighs less, by the
square of the share that do not match it (`_told`). The figures are in `scoring`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Part of a generation's name: raise it with every change that gives any chunk another sketch.
SKETCH_VERSION = "1"

# Multiplications that one matrix product may take. OpenBLAS, which NumPy's wheels carry, spreads larger products than
# 262,144 over threads that wait for one another: on a busy machine the same work took 268 ms instead of 6.
_PRODUCT = 260_000
# Tokens that are unpacked at a time: few calls, so that the interpreter's lock is given up and waited for a few times
# only (by single products it was 450 times a search), and little enough memory to stay in a cache.
_UNPACKED = 1024
# From which cosine on a chunk's token counts as the query's. With .45 most sets gain more, and Chinese documentation,
# where many candidates are of the right file, loses .014; with .55 to .6 none does.
_SAME = 0.6
# Chunks that are thought to be there beside the candidates, and to match nothing: of two that match a token, of two in
# all, one can't tell that it is common. 0 to 10 do as well where there are many.
_UNSEEN = 10


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The tokens of a query that sketches are compared with.

    Attributes:
        vectors: centred, L2-normalised, float32, shape (tokens, dimensions); see `centre`.
        rarity: minus each token's unigram log-probability, in nats, shape (tokens,).
    """

    vectors: NDArray[np.float32]
    rarity: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Matches:
    """How well chunks match a query's tokens; all shapes (chunks,), float32.

    Attributes:
        match: the mean over the query's tokens, weighted by rarity, and by how few of the chunks match them, of the
            cosine with the chunk's nearest token; NaN where a chunk has no sketch.
        file_match: of the chunk of a file that matches best, the same with the nearest token of all chunks of that
            file: what a question asks for may stand in several places. Of the others their own match.
        rare_match: as `match`, weighted by squared rarity, so by the query's names and numbers above all.
        tokens: tokens of each chunk's sketch.
    """

    match: NDArray[np.float32]
    file_match: NDArray[np.float32]
    rare_match: NDArray[np.float32]
    tokens: NDArray[np.int64]

    def where(self, kept: NDArray[np.bool_]) -> Matches:
        """Leave the others out; those that stay match as before."""
        return Matches(self.match[kept], self.file_match[kept], self.rare_match[kept], self.tokens[kept])


def is_kept(piece: str) -> bool:
    """Whether tokens of a tokenizer's piece belong into a sketch: those with a letter or a digit.

    Tokens of the prompt and special tokens are left out as well, by the caller, who knows where they are. Punctuation
    is a fifth of all tokens and matches punctuation.
    """
    return any(unicodedata.category(character)[0] in "LN" for character in piece)


def centre(vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centre token vectors, shape (tokens, dimensions), and L2-normalise them; a zero vector stays zero."""
    centred = vectors - mean
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    normalised: NDArray[np.float32] = np.divide(centred, lengths, out=centred, where=lengths > 0)
    return normalised


def make_sketch(vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> bytes:
    """Pack the signs of centred token vectors, shape (tokens, dimensions): ceil(dimensions / 8) bytes a token."""
    return np.packbits(vectors > mean, axis=1).tobytes()


def match_sketches(query: QueryTokens, sketches: Sequence[bytes], files: Sequence[Hashable] | None = None) -> Matches:
    """Compare a query, of at least one token, with chunks' sketches; an empty one has no tokens.

    `files` tells whose chunk each is; without, each is a file of its own.

    The cosine of a vector with the signs of another is √(2/π) of the cosine with the other itself, for vectors whose
    dimensions are independent and normal (Goemans and Williamson 1995 for signs on both sides); it is scaled back, so
    that a match is 1 at most up to the error of the estimate.

    Raises ValueError where a sketch is not of whole tokens.
    """
    dimensions = query.vectors.shape[1]
    width = -(-dimensions // 8)
    sizes = np.array([len(sketch) for sketch in sketches], np.int64)
    if np.any(sizes % width):
        raise ValueError(f"a sketch of {dimensions} dimensions has {width} bytes a token; got {sizes.tolist()} bytes")
    tokens = sizes // width
    best = np.full((len(sketches), len(query.vectors)), np.nan, np.float32)
    filled = np.flatnonzero(tokens)
    if filled.size:
        codes = np.frombuffer(b"".join(sketches), np.uint8).reshape(-1, width)
        starts = np.concatenate([[0], np.cumsum(tokens[filled])[:-1]])
        cosines = _cosines(query.vectors * np.float32(math.sqrt(math.pi / 2 / dimensions)), codes)
        best[filled] = np.maximum.reduceat(cosines, starts, axis=0)
    rarity, told = np.maximum(query.rarity, 1e-3), _told(best[filled])
    shares = _shares(rarity * told)
    match = best @ shares
    file_match = match if files is None else _of_files(match, best, shares, files)
    return Matches(match, file_match, best @ _shares(rarity**2 * told), tokens)


def _cosines(query: NDArray[np.float32], codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Multiply packed signs, shape (sketch tokens, width), with a query's tokens; shape (sketch tokens, tokens).

    A sign is twice its bit less one. NumPy multiplies a stack of small matrices in one call, each by itself.
    """
    dimensions = query.shape[1]
    rows = max(_PRODUCT // query.size, 1)
    step = rows * max(_UNPACKED // rows, 1)
    padded = np.zeros((-(-len(codes) // rows) * rows, codes.shape[1]), np.uint8)
    padded[: len(codes)] = codes
    product: NDArray[np.float32] = np.empty((len(padded), len(query)), np.float32)
    buffer = np.empty((step, dimensions), np.float32)
    for start in range(0, len(padded), step):
        bits = np.unpackbits(padded[start : start + step], axis=1, count=dimensions)
        unpacked = buffer[: len(bits)]
        unpacked[...] = bits
        stacked = product[start : start + step].reshape(-1, rows, len(query))
        np.matmul(unpacked.reshape(-1, rows, dimensions), 2 * query.T, out=stacked)
    cosines: NDArray[np.float32] = product[: len(codes)] - query.sum(1)
    return cosines


def _of_files(
    match: NDArray[np.float32], best: NDArray[np.float32], shares: NDArray[np.float32], files: Sequence[Hashable]
) -> NDArray[np.float32]:
    """Give each file's match to the best of its chunks, by their matches and the cosines of their nearest tokens."""
    places: dict[Hashable, int] = {}
    place = np.array([places.setdefault(file, len(places)) for file in files], np.int64)
    nearest = np.full((len(places), best.shape[1]), np.nan, np.float32)
    np.fmax.at(nearest, place, best)
    order = np.argsort(-match, kind="stable")  # what has no sketch comes last
    _, firsts = np.unique(place[order], return_index=True)
    file_match = match.copy()
    file_match[order[firsts]] = nearest @ shares
    return file_match


def _told(best: NDArray[np.float32]) -> NDArray[np.float64]:
    """Weigh a query's tokens, shape (tokens,), above 0 and at most 1, by how few of the chunks match them."""
    share = (best >= _SAME).sum(0) / (len(best) + _UNSEEN)
    told: NDArray[np.float64] = (1.0 - share) ** 2
    return told


def _shares(weights: NDArray[np.float64]) -> NDArray[np.float32]:
    shares: NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
    return shares
