"""The ONNX graph beside a plain encoder, and int8 beside fp32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from memoryd.models.encoder import MODEL_FILE, write_encoder
from memoryd.models.layers import quantise_rows
from memoryd.models.progress import no_progress
from memoryd.models.spec import Pooling, Variant
from services.embedder.engines.engine import padded
from tests.support.reference_encoder import encode
from tests.support.tiny_model import TINY, tiny_checkpoint

BATCH = [[0, 20, 30, 2], list(range(TINY.window)), [0, 2]]


def run(folder: Path, batch: list[list[int]], output: str) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(folder / MODEL_FILE)
    ids, mask = padded(batch)
    (values,) = session.run([output], {"input_ids": ids, "attention_mask": mask})
    result: NDArray[np.float32] = values
    return result


@pytest.mark.parametrize(("variant", "least"), [(Variant.FP32, 0.9998), (Variant.INT8, 0.998)])
@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("first_position", [0, 2])
def test_the_graph_computes_the_encoder(
    tmp_path: Path, variant: Variant, least: float, pooling: Pooling, first_position: int
) -> None:
    checkpoint = tiny_checkpoint(first_position=first_position)
    write_encoder(checkpoint, tmp_path, variant, no_progress, pooling)
    vectors = run(tmp_path, BATCH, "pooled")
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for vector, ids in zip(vectors, BATCH, strict=True):
        assert float(vector @ encode(checkpoint, ids, pooling)) >= least


def test_pooled_is_the_direction_of_the_mean_of_the_token_embeddings(tmp_path: Path) -> None:
    write_encoder(tiny_checkpoint(), tmp_path, Variant.FP32, no_progress)
    tokens, pooled = run(tmp_path, BATCH, "token_embeddings"), run(tmp_path, BATCH, "pooled")
    assert tokens.shape == (3, TINY.window, 32)
    for vectors, mean, ids in zip(tokens, pooled, BATCH, strict=True):
        expected = vectors[: len(ids)].mean(0)
        assert np.allclose(mean, expected / np.linalg.norm(expected), atol=1e-5)


def test_only_the_table_of_words_loses_precision_in_fp32(tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint()
    name = "embeddings.word_embeddings.weight"
    values, scales = quantise_rows(checkpoint.weights[name])
    exact = {**checkpoint.weights, name: values * scales[:, None]}
    rounded = type(checkpoint)(checkpoint.architecture, exact, checkpoint.tokenizer, "test")
    write_encoder(rounded, tmp_path, Variant.FP32, no_progress)
    for vector, ids in zip(run(tmp_path, BATCH, "pooled"), BATCH, strict=True):
        assert np.allclose(vector, encode(rounded, ids), atol=1e-5)


def test_rows_are_quantised_within_half_a_step() -> None:
    values = np.random.default_rng(1).normal(size=(20_000, 8)).astype(np.float32)
    values[7] = 0
    quantised, scales = quantise_rows(values)
    assert quantised.dtype == np.int8
    assert (np.abs(quantised * scales[:, None] - values) <= scales[:, None] * 0.501).all()
    assert quantised.min() == -127
    assert not quantised[7].any()
