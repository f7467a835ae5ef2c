"""What every embedder does, on the default model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from memoryd.domain.sketches import match_sketches
from memoryd.errors import DeadlineExceededError, InvalidInputError, UnimplementedError
from memoryd.ports import Embeddings, Lane, StreamingEmbedder, TextKind
from tests.contract.registry import EMBEDDERS
from tests.support.collect import collect
from tests.support.on_torch import need_torch
from tests.support.texts import mixed_texts

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", params=sorted(EMBEDDERS), loop_scope="module")
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[StreamingEmbedder]:
    if request.param == "sentence-transformers":
        need_torch()
    async with EMBEDDERS[request.param]() as embedder:
        yield embedder


async def embed(
    embedder: StreamingEmbedder,
    *texts: str,
    kind: TextKind = TextKind.PASSAGE,
    lane: Lane = Lane.BULK,
    timeout: float = 60.0,
) -> Embeddings:
    return await embedder.embed(texts, kind=kind, lane=lane, timeout=timeout)


async def test_the_model_is_described(embedder: StreamingEmbedder) -> None:
    info = await embedder.info()
    assert info == await embedder.info()
    assert (info.name, info.dimensions, info.window) == ("multilingual-e5-small", 384, 512)
    assert len(info.fingerprint) >= 16
    assert -1 <= info.unrelated < info.related <= 1
    assert info.engine


async def test_vectors_are_float32_of_length_one_in_the_order_of_the_texts(embedder: StreamingEmbedder) -> None:
    texts = mixed_texts(20)
    together = await embed(embedder, *texts)
    assert together.vectors.shape == (20, 384)
    assert together.vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(together.vectors, axis=1), 1, atol=1e-4)
    for text, vector in zip(texts, together.vectors, strict=True):
        alone = (await embed(embedder, text)).vectors[0]
        assert float(alone @ vector) >= 0.9999


async def test_both_lanes_give_the_same_vector(embedder: StreamingEmbedder) -> None:
    vectors = [(await embed(embedder, "the same text", lane=lane)).vectors[0] for lane in Lane]
    assert float(vectors[0] @ vectors[1]) >= 0.9999


async def test_the_kind_decides_the_prompt(embedder: StreamingEmbedder) -> None:
    query, passage = [(await embed(embedder, "a quiet street", kind=kind)).vectors[0] for kind in TextKind]
    assert float(query @ passage) < 0.9999


async def test_a_passage_has_a_sketch_of_its_words(embedder: StreamingEmbedder) -> None:
    texts = ["tea, tea: tea!", "...", *mixed_texts(6)]
    asked = await embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=60.0, sketches=True)
    assert [len(sketch) for sketch in asked.sketches[:2]] == [3 * 48, 0]
    assert all(len(sketch) >= 48 for sketch in asked.sketches[2:])
    assert not asked.query_tokens
    alone = await embedder.embed(texts[2:3], kind=TextKind.PASSAGE, lane=Lane.QUERY, timeout=60.0, sketches=True)
    bits = [np.unpackbits(np.frombuffer(sketch, np.uint8)) for sketch in (asked.sketches[2], alone.sketches[0])]
    assert np.mean(bits[0] == bits[1]) >= 0.99
    plain = await embed(embedder, *texts)
    assert not plain.sketches
    assert not plain.query_tokens
    assert float((plain.vectors * asked.vectors).sum(1).min()) >= 0.9999


async def test_a_query_matches_the_sketch_of_its_answer(embedder: StreamingEmbedder) -> None:
    answers = ["The library closes at six on Saturdays.", "成年人每天每公斤体重大约需要0.8克蛋白质。"]
    questions = ["when does the library close?", "how much protein should I eat", "?!"]
    passages = await embedder.embed(answers, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=60.0, sketches=True)
    queries = await embedder.embed(questions, kind=TextKind.QUERY, lane=Lane.QUERY, timeout=60.0, sketches=True)
    assert not queries.sketches
    *asked, blank = queries.query_tokens
    assert blank.vectors.shape == (0, 384)
    for place, tokens in enumerate(asked):
        assert tokens.vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-4)
        assert tokens.rarity.shape == tokens.vectors.shape[:1]
        assert int(match_sketches(tokens, passages.sketches).match.argmax()) == place


async def test_no_texts_give_no_vectors(embedder: StreamingEmbedder) -> None:
    embeddings = await embed(embedder)
    assert embeddings.vectors.shape == (0, 384)
    assert embeddings.tokens == 0


async def test_tokens_are_what_the_tokenizer_counts(embedder: StreamingEmbedder) -> None:
    tokenizer = await embedder.tokenizer()
    texts = mixed_texts(9)
    counts = tokenizer.count(texts)
    assert (await embed(embedder, *texts)).tokens == sum(counts)
    assert tokenizer.count(["word " * 2_000])[0] > 2_000


async def test_weights_of_words_are_in_nats(embedder: StreamingEmbedder) -> None:
    common, rare = (await embedder.tokenizer()).weights(["and", "zugzwang"])
    assert 0 <= common < rare


@pytest.mark.parametrize(
    "text",
    [
        "🙂" * 60,
        "ｆｕｌｌｗｉｄｔｈ ｔｅｘｔ",
        "\u200b\u0007",
        "</s> <pad> <unk>",
        "e\u0301 ﬁ ½ \u202e\U000e0041",
        "a",
        "\x00",
    ],
    ids=["emoji", "fullwidth", "invisible", "special tokens", "composed", "letter", "null"],
)
async def test_odd_texts_are_served(embedder: StreamingEmbedder, text: str) -> None:
    embeddings = await embed(embedder, "before", text, "after")
    assert np.isfinite(embeddings.vectors).all()
    assert np.allclose(np.linalg.norm(embeddings.vectors, axis=1), 1, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text 1 is blank"),
        (" \n\u3000", "text 1 is blank"),
        ("a\ud800", "text 1 is not Unicode"),
        (("word " * 600).strip(), "text 1 has 604 tokens with its prompt, the model's window is 512"),
        ("x" * 1_000_000, r"text 1 has \d{6} tokens with its prompt, the model's window is 512"),
    ],
    ids=["empty", "blank", "surrogate", "long", "megabyte"],
)
async def test_a_text_that_can_not_be_embedded_is_named(embedder: StreamingEmbedder, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        await embed(embedder, "before", text)


async def test_a_text_of_the_whole_window_is_served(embedder: StreamingEmbedder) -> None:
    tokenizer = await embedder.tokenizer()
    text = " ".join(["word"] * 508)
    assert tokenizer.count([text]) == [512]
    assert (await embed(embedder, text)).tokens == 512


async def test_a_deadline_is_kept(embedder: StreamingEmbedder) -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(DeadlineExceededError):
        await embed(embedder, *mixed_texts(2_000), timeout=0.2)
    assert asyncio.get_running_loop().time() - began < 30
    assert (await embed(embedder, "afterwards")).tokens > 0


async def test_a_cancelled_call_leaves_the_embedder_as_it_was(embedder: StreamingEmbedder) -> None:
    call = asyncio.create_task(embed(embedder, *mixed_texts(500)))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await embed(embedder, "afterwards")).tokens > 0


async def test_queries_are_answered_while_bulk_is_on_its_way(embedder: StreamingEmbedder) -> None:
    bulk = asyncio.create_task(embed(embedder, *mixed_texts(80)))
    queries = [await embed(embedder, f"query {number}", kind=TextKind.QUERY, lane=Lane.QUERY) for number in range(3)]
    assert not bulk.done()
    assert all(query.vectors.shape == (1, 384) for query in queries)
    assert (await bulk).vectors.shape == (80, 384)


async def test_without_a_cross_encoder_rerank_is_not_served(embedder: StreamingEmbedder) -> None:
    with pytest.raises(UnimplementedError, match="no cross-encoder is configured"):
        await embedder.rerank("query", ["text"], timeout=10.0)


async def test_a_stream_gives_what_one_call_gives(embedder: StreamingEmbedder) -> None:
    texts = mixed_texts(30)
    whole = await embed(embedder, *texts)
    answers = embedder.embed_stream(iter(texts), kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=60.0, tenant="acme")
    parts = [part async for part in answers]
    together = np.concatenate([part.vectors for part in parts])
    assert float((together * whole.vectors).sum(1).min()) >= 0.9999
    assert sum(part.tokens for part in parts) == whole.tokens


async def test_a_stream_ends_with_the_text_that_can_not_be_embedded(embedder: StreamingEmbedder) -> None:
    texts = ["before"] * 300 + [""]
    parts: list[Embeddings] = []
    answers = embedder.embed_stream(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=60.0)
    with pytest.raises(InvalidInputError, match="begins with text 256: text 44 is blank") as caught:
        await collect(answers, parts)
    assert [len(part.vectors) for part in parts] == [256]
    assert caught.value.details["index"] == "300"
