"""A tiny random model: real code on it takes milliseconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from memoryd.models.checkpoint import Architecture, Checkpoint, tensor_shapes
from memoryd.models.folder import TOKENIZER_FILE
from memoryd.models.prepare import prepare
from memoryd.models.spec import ModelSpec, Source
from memoryd.models.transformers_format import write_transformers_folder
from memoryd.models.unigram import build_unigram

TINY = ModelSpec(
    name="tiny",
    hub="tiny/random",
    query_prompt="query: ",
    passage_prompt="passage: ",
    dimensions=32,
    window=48,
    unrelated=0.1,
    related=0.7,
)


def tiny_checkpoint(seed: int = 0, hidden: int = 32, first_position: int = 0) -> Checkpoint:
    """Make a model of two layers that reads ASCII letters one by one; `hidden` is the length of its vectors."""
    random = np.random.default_rng(seed)
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -1.0)]
    pieces += [(chr(code), -2.0 - code / 100) for code in range(0x21, 0x7F)]
    sizes = Architecture(
        hidden=hidden,
        layers=2,
        heads=4,
        feed_forward=64,
        vocabulary=len(pieces) + 3,
        positions=TINY.window + first_position,
        token_types=2,
        epsilon=1e-5,
        first_position=first_position,
    )

    def tensor(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        middle = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        return random.normal(middle, 0.3, shape).astype(np.float32)

    weights = {name: tensor(name, shape) for name, shape in tensor_shapes(sizes).items()}
    return Checkpoint(sizes, weights, build_unigram(pieces), "wheel of the tests")


def prepare_tiny(folder: Path, hidden: int) -> Path:
    """Prepare a tiny model as `memoryd model prepare` does, by the name of `tiny-` and the length of its vectors."""
    spec = replace(TINY, name=f"tiny-{hidden}", dimensions=hidden, in_wheel=True)
    with patch("memoryd.models.prepare.read_wheel", lambda: tiny_checkpoint(hidden=hidden)):
        prepare(spec, folder, source=Source.WHEEL)
    return folder


def write_hub_files(checkpoint: Checkpoint, folder: Path, spec: ModelSpec = TINY) -> None:
    """Write a model as a repository of the hub has it."""
    folder.mkdir(parents=True)
    write_transformers_folder(checkpoint, folder, spec)
    checkpoint.tokenizer.save(str(folder / TOKENIZER_FILE))
