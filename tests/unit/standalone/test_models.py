"""The models of generations, loaded again by what their records say of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from memoryd.domain.generations import Generation, generation_id
from memoryd.errors import UnavailableError
from memoryd.ports import Lane, TextKind
from services.embedder.remote.settings import OpenAISettings
from services.embedder.settings import EmbedderSettings
from services.standalone.models import open_models
from tests.support.openai_server import KEY, OpenAIServer, serve_openai
from tests.support.tiny_model import prepare_tiny


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    with serve_openai() as server:
        yield server


def served_by(provider: OpenAIServer) -> EmbedderSettings:
    values = {"url": provider.url, "api_key": SecretStr(KEY), "model": "tiny", "window": 48}
    remote = OpenAISettings.model_validate(values | {"tokenizer": provider.tokenizer_file})
    return EmbedderSettings(engine="openai", openai=remote)


async def record_of(settings: EmbedderSettings) -> Generation:
    async with open_models(settings, None) as models:
        return Generation(generation_id(models.configured), models.configured, created=0.0, origin=models.origin)


async def test_a_provider_s_model_is_asked_again_beside_a_local_one(provider: OpenAIServer, tmp_path: Path) -> None:
    remote = served_by(provider)
    before = await record_of(remote)
    assert KEY not in before.origin
    local = EmbedderSettings(engine="onnx", model_dir=prepare_tiny(tmp_path, 32), openai=remote.openai)
    async with open_models(local, None) as models:
        embedder = await models.embedder(before)
        assert await embedder.info() == before.model
        made = await embedder.embed(["ferry"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
    assert made.vectors.shape == (1, before.model.dimensions)


async def test_no_other_provider_gets_the_configured_one_s_key(provider: OpenAIServer) -> None:
    """The server refuses all that come without the key."""
    before = await record_of(served_by(provider))
    with serve_openai() as other:
        async with open_models(served_by(other), None) as models:
            moved = replace(before, model=replace(before.model, fingerprint="of another model"))
            embedder = await models.embedder(moved)
            asked = len(other.requests)
            with pytest.raises(UnavailableError, match="is away"):
                await embedder.embed(["ferry"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
            assert len(other.requests) == asked
    assert len(provider.requests) > 1
