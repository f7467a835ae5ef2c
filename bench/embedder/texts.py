"""What is embedded: chunks of corpora, and queries."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import write_corpus
from memoryd.domain.chunking import Limits, chunk_markdown
from memoryd.evaluation.sets import load
from memoryd.ports import Tokenizer

_MADE_UP_SECTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Corpus:
    """Different chunks in random order, and their tokens in all."""

    name: str
    texts: list[str]
    tokens: int


def read_corpus(folder: Path | None, tokenizer: Tokenizer, window: int, tokens: int) -> Corpus:
    """Chunk a folder until there are `tokens` tokens: a retrieval set, Markdown files, or None for made-up notes."""
    documents = _documents(folder)
    rng = random.Random(7)  # noqa: S311  (repeatable order, no secret)
    rng.shuffle(documents)
    kept: dict[str, int] = {}
    limits = Limits(max_tokens=window)
    for document in documents:
        pieces = chunk_markdown(document, count=tokenizer.count, limits=limits).pieces
        inputs = [piece.embedding_input for piece in pieces]
        kept |= dict(zip(inputs, tokenizer.count(inputs), strict=True))
        if sum(kept.values()) >= tokens * 4:  # from several documents, so that no single one decides the lengths
            break
    texts = list(kept)
    rng.shuffle(texts)
    chosen, total = [], 0
    for text in texts:
        chosen.append(text)
        total += kept[text]
        if total >= tokens:
            break
    return Corpus(folder.name if folder else "made-up notes", chosen, total)


def queries(corpora: list[Corpus], count: int) -> list[str]:
    """Cut different short texts, about as long as questions, out of chunks."""
    words = [text.split() for corpus in corpora for text in corpus.texts]
    cut = [" ".join(each[3:14])[:60] for each in words]
    cut = [text for text in dict.fromkeys(cut) if len(text) > 10]  # noqa: PLR2004  (not blank, not a word)
    return [f"{cut[n % len(cut)]} {n // len(cut) or ''}".strip() for n in range(count)]


def _documents(folder: Path | None) -> list[str]:
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            write_corpus(Path(temporary), _MADE_UP_SECTIONS)
            return _markdown(Path(temporary))
    if (folder / "corpus.jsonl").is_file():
        return [document.text for document in load(folder).documents]
    return _markdown(folder)


def _markdown(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.rglob("*.md"))]
