"""The real default model on ONNX Runtime."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryd.errors import ConfigError, ModelError
from memoryd.models.encoder import MODEL_FILE
from memoryd.models.folder import PreparedModel, open_model
from memoryd.models.prepare import prepare
from memoryd.models.spec import Source, Variant
from memoryd.ports import TextKind
from services.embedder.engines.onnx import OnnxEngine
from tests.support.model import model_dir
from tests.support.texts import mixed_texts
from tests.support.tiny_model import TINY, prepare_tiny, tiny_checkpoint


@pytest.fixture(scope="module")
def engine() -> OnnxEngine:
    return OnnxEngine.load(model_dir())


@pytest.fixture(scope="module")
def ids(engine: OnnxEngine) -> list[list[int]]:
    return engine.tokenizer.ids(mixed_texts(32), TextKind.PASSAGE)


@pytest.fixture(scope="module")
def alone(engine: OnnxEngine, ids: list[list[int]]) -> NDArray[np.float32]:
    return np.concatenate([engine.encode([each]) for each in ids])


def least_cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    return float((left * right).sum(1).min())


@pytest.mark.parametrize("size", [3, 32])
def test_a_vector_does_not_depend_on_the_batch(
    engine: OnnxEngine, ids: list[list[int]], alone: NDArray[np.float32], size: int
) -> None:
    batches = [ids[first : first + size] for first in range(0, len(ids), size)]
    together = np.concatenate([engine.encode(batch) for batch in batches])
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert least_cosine(alone, together) >= 0.9999


def test_threads_share_a_session(engine: OnnxEngine, ids: list[list[int]], alone: NDArray[np.float32]) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda each: engine.encode([each]), ids))
    assert np.array_equal(np.concatenate(found), alone)


def test_int8_stays_near_fp32(engine: OnnxEngine, ids: list[list[int]], alone: NDArray[np.float32]) -> None:
    exact = OnnxEngine.load(model_dir(Variant.FP32))
    assert least_cosine(np.concatenate([exact.encode([each]) for each in ids]), alone) >= 0.998
    assert exact.info.fingerprint != engine.info.fingerprint


def test_a_question_is_nearest_to_its_answer_across_languages(engine: OnnxEngine) -> None:
    passages = [
        "Adults need about 0.8 grams of protein per kilogram of body weight a day.",
        "成年人每天每公斤体重大约需要0.8克蛋白质。",
        "The library closes at six on Saturdays.",
        "图书馆星期六六点关门。",
    ]
    questions = ["how much protein should I eat", "图书馆几点关门"]
    cosines = (
        engine.encode(engine.tokenizer.ids(questions, TextKind.QUERY))
        @ engine.encode(engine.tokenizer.ids(passages, TextKind.PASSAGE)).T
    )
    assert cosines.argmax(1).tolist() == [0, 3]
    english, chinese = cosines[:, [0, 2]], cosines[:, [1, 3]]
    assert english.argmax(1).tolist() == chinese.argmax(1).tolist() == [0, 1]


def test_a_folder_for_torch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.models.prepare.read_hub", lambda spec, progress: tiny_checkpoint())
    prepare(TINY, tmp_path / "model", variant=Variant.TORCH, source=Source.HUB)
    with pytest.raises(ModelError, match="is prepared for sentence-transformers, not for the engine onnx"):
        OnnxEngine.load(tmp_path / "model")


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps"])
def test_a_device_that_is_not_there_is_one_line(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ConfigError, match=f"can't use the device {device}: install onnxruntime-gpu in place of"):
        OnnxEngine.load(model_dir(), device)


def test_a_graph_that_is_none_is_one_line(tmp_path: Path) -> None:
    whole = open_model(model_dir())
    shutil.copytree(whole.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / MODEL_FILE).write_bytes(b"no graph")
    with pytest.raises(ModelError) as refused:
        OnnxEngine(PreparedModel(tmp_path, whole.manifest))
    assert str(refused.value) == (
        f"{tmp_path / MODEL_FILE} can't be loaded by ONNX Runtime: run `memoryd model prepare`"
    )


def test_settings_replace_the_typical_cosines(tmp_path: Path) -> None:
    folder = prepare_tiny(tmp_path / "model", 32)
    own, changed = OnnxEngine.load(folder).info, OnnxEngine.load(folder, unrelated=0.3, related=0.8).info
    assert (own.unrelated, own.related) == (TINY.unrelated, TINY.related)
    assert (changed.unrelated, changed.related, changed.fingerprint) == (0.3, 0.8, own.fingerprint)
