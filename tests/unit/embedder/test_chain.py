"""A local engine with a provider behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from memoryd.errors import InvalidInputError, ModelError, UnavailableError
from memoryd.models.spec import Variant
from memoryd.ports import Embeddings, Lane, TextKind
from services.embedder.compose import open_embedder
from services.embedder.metrics import EmbedderMetrics
from services.embedder.remote.settings import OpenAISettings
from services.embedder.served import ServedEmbedder
from services.embedder.settings import EmbedderSettings
from tests.support.openai_server import KEY, OpenAIServer, serve_openai


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serve_openai() as server:
        yield server


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def settings(server: OpenAIServer, model_dir: Path) -> EmbedderSettings:
    openai = OpenAISettings(
        url=server.url, api_key=SecretStr(KEY), model="tiny", window=48, tokenizer=server.tokenizer_file
    )
    return EmbedderSettings(model_dir=model_dir, variant=Variant.FP32, fallback="openai", openai=openai)


@pytest.fixture
async def chain(server: OpenAIServer, registry: CollectorRegistry) -> AsyncIterator[ServedEmbedder]:
    folder = server.tokenizer_file.parent
    async with open_embedder(settings(server, folder), metrics=EmbedderMetrics(registry)) as chain:
        server.requests.clear()
        yield chain


async def embed(embedder: ServedEmbedder, *texts: str) -> Embeddings:
    return await embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=30)


def breaks(chain: ServedEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The local engine fails on everything from now on."""

    def fails(batch: object) -> None:
        raise RuntimeError("boom")

    for method in ("encode", "encode_tokens"):
        monkeypatch.setattr(chain._local._engine, method, fails)  # type: ignore[attr-defined]  # noqa: SLF001  (an engine fails inside)


async def test_the_local_engine_is_asked_first(chain: ServedEmbedder, server: OpenAIServer) -> None:
    assert (await embed(chain, "abc")).vectors.shape == (1, 32)
    assert (await chain.info()).provider == "local"
    with pytest.raises(InvalidInputError):
        await embed(chain, " ")
    assert server.requests == []


async def test_the_same_model_stands_in(
    chain: ServedEmbedder, server: OpenAIServer, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await embed(chain, "abc", "d")
    breaks(chain, monkeypatch)
    # The remote puts the local prompt before a text, its server another one more: take that away.
    monkeypatch.setattr(server, "engine", Unprompted(server))
    after = await embed(chain, "abc", "d")
    assert np.allclose(before.vectors, after.vectors, atol=1e-5)
    assert before.tokens == after.tokens
    assert registry.get_sample_value("memoryd_embedder_fallbacks_total", {"lane": Lane.BULK}) == 1
    with pytest.raises(UnavailableError, match="the embedding engine failed"):
        await chain.embed(["abc"], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=30, sketches=True)
    query = await chain.embed(["abc"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=30, sketches=True)
    assert query.vectors.shape == (1, 32)
    assert not query.query_tokens


async def test_another_model_never_stands_in(
    chain: ServedEmbedder, server: OpenAIServer, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(chain, monkeypatch)  # with the server's own prompt the vectors are others
    for _ in range(2):
        with pytest.raises(UnavailableError, match="the embedding engine failed"):
            await embed(chain, "abc")
    asked = [request["input"] for request in server.requests]
    assert ["passage: abc"] not in asked
    assert registry.get_sample_value("memoryd_embedder_fallbacks_total", {"lane": Lane.BULK}) is None


async def test_a_provider_that_is_down_leaves_the_local_error(
    chain: ServedEmbedder, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(chain, monkeypatch)
    server.refusals.append((401, {}, {}))
    with pytest.raises(UnavailableError, match="the embedding engine failed"):
        await embed(chain, "abc")


async def test_without_a_local_model_the_providers_own_is_served(server: OpenAIServer, tmp_path: Path) -> None:
    async with open_embedder(settings(server, tmp_path / "none")) as remote:
        info = await remote.info()
        assert (info.name, info.engine) == ("tiny", "openai")
        assert (await embed(remote, "abc")).vectors.shape == (1, 32)
    alone = settings(server, tmp_path / "none").model_copy(update={"fallback": ""})
    with pytest.raises(ModelError, match="no model in"):
        async with open_embedder(alone):
            pass


async def test_a_provider_is_an_engine_too(server: OpenAIServer, tmp_path: Path) -> None:
    chosen = settings(server, tmp_path / "none").model_copy(update={"engine": "openai"})
    async with open_embedder(chosen) as remote:
        assert (await remote.info()).provider == chosen.openai.host


class Unprompted:
    """The server's engine, for requests whose texts have their prompt."""

    def __init__(self, server: OpenAIServer) -> None:
        self._engine = server.engine
        self.encode = server.engine.encode

    @property
    def tokenizer(self) -> Unprompted:
        return self

    def ids(self, texts: list[str], kind: TextKind) -> list[list[int]]:
        return self._engine.tokenizer._encoder.encode(texts, special=True)  # noqa: SLF001  (the encoder has no prompts)
