"""The tokenizer of the XLM-RoBERTa family, made from its pieces: SentencePiece unigram as `tokenizers` runs it."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

_BOS, _PAD, _EOS, _UNK, _MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
_SPACE = "▁"
# SentencePiece's nmt_nfkc leaves the full-width tilde alone, which Chinese and Japanese text is full of. A
# noncharacter, which no text interchanges (Unicode 23.7), stands for it while NFKC is applied.
_TILDE, _TILDE_STAND_IN = "\uff5e", "\ufdd0"


def build_unigram(pieces: Sequence[tuple[str, float]]) -> Tokenizer:
    """Make the tokenizer from its pieces and their log-probabilities, in the order of their ids.

    `tokenizers` has SentencePiece's NMT rules and NFKC; together with the exceptions here they map every code point as
    the model's own character map does, and compose accents as it does.
    """
    ids = {piece: position for position, (piece, _) in enumerate(pieces)}
    tokenizer = Tokenizer(models.Unigram(list(pieces), unk_id=ids[_UNK], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.Replace(_TILDE, _TILDE_STAND_IN),
            normalizers.NFKC(),
            normalizers.Replace(_TILDE_STAND_IN, _TILDE),
            normalizers.Replace(_SPACE, " "),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_BOS} $A {_EOS}",
        pair=f"{_BOS} $A {_EOS} {_EOS} $B {_EOS}",
        special_tokens=[(_BOS, ids[_BOS]), (_EOS, ids[_EOS])],
    )
    special = [AddedToken(name, special=True, normalized=False) for name in (_BOS, _PAD, _EOS, _UNK, _MASK)]
    tokenizer.add_special_tokens([token for token in special if token.content in ids])
    return tokenizer
