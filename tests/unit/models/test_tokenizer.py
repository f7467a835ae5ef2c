"""The tokenizer: ids, counts and weights."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from memoryd.errors import InvalidInputError
from memoryd.models.fast_tokenizer import FastEncoder, piece_costs
from memoryd.models.folder import open_model
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import TextKind
from tests.support.model import model_dir
from tests.support.texts import mixed_texts


@pytest.fixture(scope="module")
def tokenizer() -> ModelTokenizer:
    return open_model(model_dir()).tokenizer()


@pytest.fixture(scope="module")
def plain() -> Tokenizer:
    return Tokenizer.from_file(str(model_dir() / "tokenizer.json"))


# The ids that fairseq's page on XLM-R gives for its tokenizer, which is this model's:
# https://github.com/facebookresearch/fairseq/tree/main/examples/xlmr
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Hello world!", [0, 35378, 8999, 38, 2]),
        ("你好，世界", [0, 6, 124084, 4, 3221, 2]),
        ("नमस्ते दुनिया", [0, 68700, 97883, 29405, 2]),
        ("مرحبا بالعالم", [0, 665, 193478, 258, 1705, 77796, 2]),
        ("Bonjour le monde", [0, 84602, 95, 11146, 2]),
    ],
)
def test_ids_are_those_of_xlm_roberta(plain: Tokenizer, text: str, ids: list[int]) -> None:
    assert plain.encode(text).ids == ids


def test_the_prompt_depends_on_the_kind(tokenizer: ModelTokenizer) -> None:
    query, passage = (tokenizer.ids(["tea"], kind)[0] for kind in (TextKind.QUERY, TextKind.PASSAGE))
    assert query != passage
    assert query[-2:] == passage[-2:]


@pytest.mark.parametrize(
    "text", ["tea", "世界～", "a" * 10_000, "🙂" * 100, "ｆｕｌｌｗｉｄｔｈ　ｔｅｘｔ", "\u200b", "</s> <pad>"]
)
def test_a_count_is_the_number_of_ids(tokenizer: ModelTokenizer, text: str) -> None:
    assert tokenizer.count([text]) == [len(tokenizer.ids([text], TextKind.PASSAGE)[0])]


def test_a_count_takes_anything(tokenizer: ModelTokenizer) -> None:
    assert tokenizer.count([]) == []
    assert tokenizer.count(["", " ", "a\ud800b"]) == tokenizer.count(["", "", "a?b"])


def test_fullwidth_letters_are_the_plain_ones_but_the_tilde_stays(tokenizer: ModelTokenizer) -> None:
    fullwidth, plain = tokenizer.ids(["ｔｅａ", "tea"], TextKind.PASSAGE)
    assert fullwidth == plain
    assert len({tuple(ids) for ids in tokenizer.ids(["1～2", "1~2"], TextKind.PASSAGE)}) == 2


@pytest.mark.parametrize("blank", ["", "  ", "\n\t", "\u3000"])
def test_a_blank_text_is_refused_by_its_index(tokenizer: ModelTokenizer, blank: str) -> None:
    with pytest.raises(InvalidInputError, match="text 1 is blank") as refused:
        tokenizer.ids(["tea", blank], TextKind.PASSAGE)
    assert refused.value.details == {"index": "1"}


def kept(tokenizer: ModelTokenizer, text: str, kind: TextKind) -> list[str]:
    (ids,) = tokenizer.ids([text], kind)
    pieces = Tokenizer.from_file(str(model_dir() / "tokenizer.json"))
    return [
        pieces.id_to_token(each) or "" for each, is_kept in zip(ids, tokenizer.kept(ids, kind), strict=True) if is_kept
    ]


@pytest.mark.parametrize("kind", TextKind)
def test_sketches_keep_words_and_numbers_and_nothing_of_the_prompt(tokenizer: ModelTokenizer, kind: TextKind) -> None:
    assert kept(tokenizer, "query: DEC-0054, 你好 🙂 …!", kind) == ["▁que", "ry", "▁DEC", "-00", "54", "你好"]
    assert kept(tokenizer, "\U0001f9ff?!", kind) == []


def test_tokens_are_kept_whatever_runs_the_tokenizer(tokenizer: ModelTokenizer) -> None:
    other = ModelTokenizer(FastEncoder(Tokenizer.from_file(str(model_dir() / "tokenizer.json"))), "query: ", "")
    for text in mixed_texts(8):
        (ids,) = tokenizer.ids([text], TextKind.QUERY)
        assert other.ids([text], TextKind.QUERY) == [ids]
        assert other.kept(ids, TextKind.QUERY).tolist() == tokenizer.kept(ids, TextKind.QUERY).tolist()
        assert other.rarity(ids) == pytest.approx(tokenizer.rarity(ids), abs=1e-4)


def test_a_lone_surrogate_is_refused_by_its_place(tokenizer: ModelTokenizer) -> None:
    with pytest.raises(InvalidInputError, match=r"text 1 is not Unicode: .* at character 2"):
        tokenizer.ids(["tea", "te\ud800a"], TextKind.QUERY)


def test_rare_words_weigh_more(tokenizer: ModelTokenizer) -> None:
    the, kitchen, rare, unknown, nothing = tokenizer.weights(["the", "kitchen", "zugzwang", "\U00013000", ""])
    assert nothing == 0 < the < kitchen < rare
    assert unknown > 20


def test_a_weight_is_minus_the_sum_of_log_probabilities() -> None:
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -1.0), ("▁tea", -4.5), ("s", -2.0)]
    raw = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = ModelTokenizer(FastEncoder(raw), "", "")
    assert tokenizer.weights(["tea", "teas", "s"]) == [4.5, 6.5, 3.0]
    assert tokenizer.weights(["é"]) == [1.0 + 4.5 + 10.0]  # SentencePiece's penalty below the least likely piece


def test_ids_stand_in_for_frequencies_where_there_are_none() -> None:
    vocabulary = {"[UNK]": 0, "the": 1, "kitchen": 2}
    costs = piece_costs(Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]")))
    assert list(costs) == sorted(costs)
    assert costs[2] - costs[1] == pytest.approx(math.log(3 / 2))
    assert costs[0] >= 0


def test_sentencepiece_and_the_library_give_the_same_ids(tokenizer: ModelTokenizer, plain: Tokenizer) -> None:
    workspace = Path(__file__).parents[3] / "examples" / "workspace"
    lines = [line.strip() for path in workspace.rglob("*.md") for line in path.read_text(encoding="utf-8").splitlines()]
    texts = [line for line in lines if line]
    assert len(texts) > 500
    expected = [encoding.ids for encoding in plain.encode_batch([f"passage: {text}" for text in texts])]
    assert tokenizer.ids(texts, TextKind.PASSAGE) == expected


def test_names_of_special_tokens_in_a_text_are_text(tokenizer: ModelTokenizer) -> None:
    (ids,) = tokenizer.ids(["</s> <pad> <mask>"], TextKind.PASSAGE)
    assert ids.count(2) == 1
    assert ids[-1] == 2
    assert 1 not in ids


def test_a_dumped_tokenizer_is_the_same_when_it_is_read_again(tokenizer: ModelTokenizer, plain: Tokenizer) -> None:
    for one in (tokenizer, ModelTokenizer(FastEncoder(plain), "query: ", "passage: ")):
        again = ModelTokenizer.parse(one.dump(), one.prompt(TextKind.QUERY), one.prompt(TextKind.PASSAGE))
        assert again.ids(["成语接龙 tea"], TextKind.QUERY) == one.ids(["成语接龙 tea"], TextKind.QUERY)
        assert again.weights(["zugzwang"]) == one.weights(["zugzwang"])
    for damaged in (b"", b"{}", b"\xff\xfe"):
        with pytest.raises(ValueError, match="no "):
            ModelTokenizer.parse(damaged, "", "")
