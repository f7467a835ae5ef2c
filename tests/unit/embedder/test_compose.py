"""What settings give."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from memoryd.errors import ConfigError, ModelError
from memoryd.models.encoder import MODEL_FILE
from memoryd.models.progress import described
from memoryd.models.spec import Variant
from memoryd.process.settings import shown
from services.embedder.compose import open_embedder
from services.embedder.remote.settings import OpenAISettings
from services.embedder.settings import EmbedderSettings
from tests.support.model import model_dir
from tests.support.tiny_model import prepare_tiny


def test_every_setting_is_documented_and_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = EmbedderSettings.model_fields | OpenAISettings.model_fields
    assert [name for name, field in fields.items() if not field.description] == ["openai"]
    monkeypatch.setenv("MEMORYD_EMBEDDER_VARIANT", "fp32")
    monkeypatch.setenv("MEMORYD_EMBEDDER_MODEL_DIR", "/models/e5")
    monkeypatch.setenv("MEMORYD_EMBEDDER_BULK_THREADS", "3")
    monkeypatch.setenv("MEMORYD_EMBEDDER_OPENAI_API_KEY", "sk-some-key")
    settings = EmbedderSettings()
    assert settings.openai.api_key
    assert "sk-some-key" not in str(shown(settings))
    assert (settings.variant, settings.model_dir, settings.bulk_threads) == (Variant.FP32, Path("/models/e5"), 3)


def test_a_gpu_gets_large_batches_and_two_threads() -> None:
    assert (EmbedderSettings(device="cuda:1").batch, EmbedderSettings(device="cuda:1").threads) == (16_384, 2)
    assert EmbedderSettings().batch == 512
    assert EmbedderSettings(batch_tokens=99, bulk_threads=3, device="cuda").batch == 99
    with pytest.raises(ValidationError, match="device"):
        EmbedderSettings(device="gpu")


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="engine"):
        EmbedderSettings.model_validate({"engine": "none"})


async def test_the_model_is_ready_when_it_opens() -> None:
    async with open_embedder(EmbedderSettings(model_dir=model_dir())) as embedder:
        assert (await embedder.info()).engine == "onnx int8"


async def test_the_default_folder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(model_dir()))
    async with open_embedder(EmbedderSettings()) as embedder:
        assert (await embedder.info()).name == "multilingual-e5-small"


async def test_a_missing_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^no model in .*: run `memoryd model prepare`$"):
        async with open_embedder(EmbedderSettings(model_dir=tmp_path / "none")):
            pass


async def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="'e6' is no model"):
        async with open_embedder(EmbedderSettings(model="e6")):
            pass


@pytest.mark.parametrize("settings", [{"engine": "sentence-transformers"}, {"cross_encoder": "some/model"}])
async def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ConfigError, match=r"needs the extra `torch`: pip install 'memoryd\[torch\]'"):
        async with open_embedder(EmbedderSettings.model_validate({"model_dir": model_dir()} | settings)):
            pass


async def test_a_process_with_half_a_model_ends_with_one_line(tmp_path: Path) -> None:
    shutil.copytree(model_dir(), tmp_path, dirs_exist_ok=True, copy_function=os.symlink)
    (tmp_path / MODEL_FILE).unlink()
    (tmp_path / MODEL_FILE).write_bytes(b"half")
    variables = {"EMBEDDER_MODEL_DIR": tmp_path, "GRPC_ADDRESS": "127.0.0.1:0", "SERVICE_INSECURE": "true"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.embedder"),
        env=os.environ | {f"MEMORYD_{name}": str(value) for name, value in variables.items()},
        stderr=asyncio.subprocess.PIPE,
    )
    _, shown = await asyncio.wait_for(process.communicate(), 60)
    *_, last = shown.decode().splitlines()
    assert process.returncode == 1
    assert re.fullmatch(r"memoryd: .* has 4 bytes, not \d+, the model is half there: run `memoryd model prepare`", last)


async def test_loading_is_reported_by_stage_and_share(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    settings = EmbedderSettings(model_dir=prepare_tiny(tmp_path / "model", 32))
    async with open_embedder(settings, progress=lambda *at: seen.append(at)):
        assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["verify", "load into ONNX Runtime", "warm up"]
    verified = [at for at in seen if at[0] == "verify"]
    assert described(*verified[-1]) == "verify, 100 %"
    assert described("warm up", 0, 0) == "warm up"
