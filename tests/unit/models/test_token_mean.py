"""The mean token vector: computed once, kept beside the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryd.models.folder import PreparedModel, open_model
from memoryd.models.prepare import prepare
from memoryd.models.spec import Source
from memoryd.models.token_mean import compute_mean, has_mean, mean_in, mean_of, stored_mean
from memoryd.ports import TextKind
from services.embedder.engines.onnx import OnnxEngine
from tests.support.model import model_dir
from tests.support.tiny_model import TINY, tiny_checkpoint


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedModel:
    monkeypatch.setattr("memoryd.models.prepare.read_hub", lambda spec, progress: tiny_checkpoint())
    return prepare(TINY, tmp_path / "model", source=Source.HUB)


def refuse() -> NDArray[np.float32]:
    raise AssertionError


def mean_file(model: PreparedModel) -> Path:
    (file,) = model.folder.glob("token-mean-*.npy")
    return file


def test_a_model_prepared_without_it_gets_it_when_it_is_loaded(model: PreparedModel) -> None:
    assert not has_mean(mean_in(model.folder), 32)
    mean = OnnxEngine(model).token_mean
    assert mean.shape == (32,)
    assert mean.dtype == np.float32
    assert has_mean(mean_in(model.folder), 32)
    assert np.array_equal(stored_mean(mean_in(model.folder), 32, refuse), mean)
    again = open_model(model.folder)
    assert again.manifest.fingerprint == model.manifest.fingerprint
    mean_file(model).unlink()
    assert np.allclose(OnnxEngine(again).token_mean, mean, atol=1e-5)


@pytest.mark.parametrize("content", [b"", b"no array", None], ids=["empty", "other", "another model's"])
def test_a_broken_file_is_replaced(model: PreparedModel, content: bytes | None) -> None:
    mean = OnnxEngine(model).token_mean
    if content is None:
        np.save(mean_file(model), np.zeros(7, np.float32))
    else:
        mean_file(model).write_bytes(content)
    assert np.allclose(stored_mean(mean_in(model.folder), 32, lambda: mean), mean)
    assert np.array_equal(stored_mean(mean_in(model.folder), 32, refuse), mean)


def test_a_folder_that_can_not_be_written_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = mean_in(tmp_path / "file")
    assert np.array_equal(stored_mean(place, 32, lambda: np.ones(32, np.float32)), np.ones(32))


def test_a_model_without_a_folder_has_it_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stored_mean(mean_of("a" * 32), 32, lambda: np.ones(32, np.float32))
    assert mean_of("a" * 32).is_relative_to(tmp_path)
    assert np.array_equal(stored_mean(mean_of("a" * 32), 32, refuse), np.ones(32))


def test_the_sample_is_large_and_only_its_words_count() -> None:
    tokenizer = open_model(model_dir()).tokenizer()
    seen = []

    def encode(ids: list[int]) -> NDArray[np.float32]:
        assert len(ids) <= 512
        kept = tokenizer.kept(ids, TextKind.PASSAGE)
        seen.append(int(kept.sum()))
        return np.where(kept[:, None], np.float32(3), np.float32(np.nan))

    assert compute_mean(tokenizer, 512, encode).tolist() == [3.0]
    assert sum(seen) >= 8_000
