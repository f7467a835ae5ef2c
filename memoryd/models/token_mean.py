"""A model's mean token vector, which token sketches are centred on: kept beside the model, made where it is missing.

It is no part of the model's fingerprint, as it changes no embedding: the version of sketches stands in its file's name.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.sketches import SKETCH_VERSION
from memoryd.models.spec import models_folder
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import TextKind

# A part of SKETCH_VERSION: another sample gives other sketches.
_SAMPLE = "token_sample.txt"
_FILE = f"token-mean-{SKETCH_VERSION}.npy"
# The table in `domain/sketches`: few tokens do nearly as well. The sample has about this many; a model that reads
# letter by letter would take all day.
_MAX_TOKENS = 12_000


def mean_in(folder: Path) -> Path:
    """Name the file in a prepared model's folder."""
    return folder / _FILE


def mean_of(fingerprint: str) -> Path:
    """Name the file of a model that has no such folder: in the user's cache."""
    return models_folder() / f"{fingerprint}.{_FILE}"


def has_mean(place: Path, dimensions: int) -> bool:
    """Whether a model's mean is stored there."""
    return _read(place, dimensions) is not None


def stored_mean(place: Path, dimensions: int, compute: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Read a model's mean, shape (dimensions,), or compute and store it; the folder may be read-only."""
    mean = _read(place, dimensions)
    if mean is None:
        mean = compute()
        with suppress(OSError):
            _write(place, mean)
    return mean


def compute_mean(
    tokenizer: ModelTokenizer, window: int, encode: Callable[[list[int]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Average the vectors of a fixed sample's tokens that sketches keep.

    Args:
        tokenizer: the model's.
        window: longest input in tokens; the rest of a longer paragraph is left out.
        encode: gives the vectors of one text's tokens, shape (tokens, dimensions), from its ids.
    """
    total, count = None, 0
    for ids in tokenizer.ids(_paragraphs(), TextKind.PASSAGE):
        cut = ids[:window]
        vectors = encode(cut)[tokenizer.kept(cut, TextKind.PASSAGE)].astype(np.float64)
        total = vectors.sum(0) if total is None else total + vectors.sum(0)
        count += len(vectors)
        if count >= _MAX_TOKENS:
            break
    mean: NDArray[np.float32] = (np.asarray(total) / max(count, 1)).astype(np.float32)
    return mean


def _paragraphs() -> list[str]:
    text = resources.files("memoryd.models").joinpath(_SAMPLE).read_text(encoding="utf-8")
    return [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]


def _read(place: Path, dimensions: int) -> NDArray[np.float32] | None:
    try:
        mean: NDArray[np.float32] = np.load(place, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    sound = mean.shape == (dimensions,) and mean.dtype == np.float32 and bool(np.isfinite(mean).all())
    return mean if sound else None


def _write(place: Path, mean: NDArray[np.float32]) -> None:
    """Put the file in place in one step: a process that starts beside this one reads all of it or nothing."""
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{_FILE}-", dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.save(file, mean)
        Path(name).chmod(0o644)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
