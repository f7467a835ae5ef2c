"""A model from a hub: a small local one that serves a tiny model."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest

from memoryd.errors import ModelError
from memoryd.models import prepare as module
from memoryd.models.prepare import prepare, read_checkpoint
from memoryd.models.spec import Pooling, Source, Variant
from memoryd.ports import TextKind
from services.embedder.engines.onnx import OnnxEngine
from tests.support.hub_server import HubServer, serve_hub
from tests.support.reference_encoder import encode
from tests.support.tiny_model import TINY, tiny_checkpoint, write_hub_files

IN_BOTH = replace(TINY, in_wheel=True)
WHEEL = tiny_checkpoint().source


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    write_hub_files(tiny_checkpoint(), tmp_path / "hub" / TINY.hub)
    with serve_hub(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture(autouse=True)
def tiny_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_wheel", tiny_checkpoint)


def rewrite(hub: HubServer, **changes: object) -> None:
    path = hub.root / TINY.hub / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_hub_that_answers_is_used(hub: HubServer, tmp_path: Path) -> None:
    seen = []
    prepared = prepare(IN_BOTH, tmp_path / "model", progress=lambda stage, done, of: seen.append((stage, done, of)))
    assert prepared.manifest.source == "hub tiny/random"
    size = (hub.root / TINY.hub / "model.safetensors").stat().st_size
    assert ("download model.safetensors", size, size) in seen


def test_the_same_weights_come_from_the_hub(hub: HubServer) -> None:
    read, written = read_checkpoint(TINY, Source.HUB), tiny_checkpoint()
    assert read.architecture == written.architecture
    for name, tensor in written.weights.items():
        assert np.array_equal(read.weights[name], tensor)
    assert read.tokenizer.encode("tea").ids == written.tokenizer.encode("tea").ids


def test_the_positions_of_an_xlm_roberta_begin_after_its_padding(hub: HubServer, tmp_path: Path) -> None:
    written = tiny_checkpoint(first_position=2)
    write_hub_files(written, tmp_path / "hub/tiny/roberta")
    spec = replace(TINY, hub="tiny/roberta", pooling=Pooling.CLS)
    assert read_checkpoint(spec, Source.HUB).architecture == written.architecture
    engine = OnnxEngine(prepare(spec, tmp_path / "model", variant=Variant.FP32))
    (ids,) = engine.tokenizer.ids(["tea"], TextKind.PASSAGE)
    assert float(engine.encode([ids, [*ids, *ids]])[0] @ encode(written, ids, Pooling.CLS)) >= 0.9998


@pytest.mark.parametrize("changes", [{"dimensions": 64}, {"window": TINY.window + 1}])
def test_another_model_than_the_one_that_was_meant_is_refused(
    hub: HubServer, tmp_path: Path, changes: dict[str, Any]
) -> None:
    spec = replace(TINY, **changes)
    with pytest.raises(ModelError, match=r"hub tiny/random has 32 dimensions .* another model"):
        prepare(spec, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_prepared_folder_asks_nobody(hub: HubServer, tmp_path: Path) -> None:
    prepare(TINY, tmp_path / "model", source=Source.HUB)
    hub.requests.clear()
    prepare(TINY, tmp_path / "model", source=Source.HUB)
    assert hub.requests == []


def test_the_wheel_asked_for_by_name_replaces_the_hubs(hub: HubServer, tmp_path: Path) -> None:
    prepare(IN_BOTH, tmp_path / "model")
    assert prepare(IN_BOTH, tmp_path / "model", source=Source.WHEEL).manifest.source == WHEEL


def test_offline_means_the_wheel(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert read_checkpoint(IN_BOTH, Source.AUTO).source == WHEEL
    assert hub.requests == []
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set"):
        read_checkpoint(IN_BOTH, Source.HUB)


def test_a_closed_port_means_the_wheel(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        assert read_checkpoint(IN_BOTH, Source.AUTO).source == WHEEL


def test_a_hub_that_never_answers_means_the_wheel(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HUB_DEADLINE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert read_checkpoint(IN_BOTH, Source.AUTO).source == WHEEL


def test_an_unknown_repository_means_the_wheel(hub: HubServer) -> None:
    spec = replace(IN_BOTH, hub="tiny/none")
    assert read_checkpoint(spec, Source.AUTO).source == WHEEL
    with pytest.raises(ModelError, match=r"config\.json of tiny/none can't be downloaded"):
        read_checkpoint(spec, Source.HUB)


@pytest.mark.parametrize("fault", ["cut", "forged"])
def test_a_broken_download_is_an_error_or_means_the_wheel(
    hub: HubServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setattr(hub, fault, "model.safetensors")
    monkeypatch.setattr("time.sleep", lambda _: None)  # the client waits between its tries
    with pytest.raises(ModelError, match=r"model\.safetensors of tiny/random can't be downloaded"):
        read_checkpoint(TINY, Source.HUB)
    assert read_checkpoint(IN_BOTH, Source.AUTO).source == WHEEL


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2'"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"num_hidden_layers": 3}, r"model\.safetensors lacks encoder\.layer\.2"),
        ({"hidden_size": 64}, "in another shape than config.json says"),
    ],
)
def test_another_kind_of_model_is_refused(hub: HubServer, changes: dict[str, Any], message: str) -> None:
    rewrite(hub, **changes)
    with pytest.raises(ModelError, match=message):
        read_checkpoint(TINY, Source.HUB)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_file_is_an_error(hub: HubServer, name: str) -> None:
    (hub.root / TINY.hub / name).write_bytes(b"damaged")
    with pytest.raises(ModelError):
        read_checkpoint(TINY, Source.HUB)
