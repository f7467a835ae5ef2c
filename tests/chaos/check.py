"""Compares both stores and the outlines with the files on disk, and answers with all texts that there ever were."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memoryd.client import SearchReply
from memoryd.domain.chunking import Limits, chunk_markdown
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.snippets import MAX_CHARS
from memoryd.domain.text import analyze
from memoryd.ports import (
    ChunkStore,
    Embedder,
    Filter,
    Hit,
    Lane,
    Manifest,
    QueryTerm,
    TextKind,
    TextStore,
    Tokenizer,
    VectorStore,
)
from tests.chaos.stream import COMMON
from tests.support.hits import text_hits, vector_hits

_ALL = 10_000


@dataclass
class Counts:
    """What is wrong, in chunks of both stores."""

    lost: int = 0
    ghost: int = 0
    doubled: int = 0
    wrong_lines: int = 0

    def __str__(self) -> str:
        """Tell all."""
        return f"{self.lost} lost, {self.ghost} ghost, {self.doubled} doubled, {self.wrong_lines} wrong lines"

    def add(self, other: Counts) -> None:
        """Add what is wrong elsewhere."""
        self.lost += other.lost
        self.ghost += other.ghost
        self.doubled += other.doubled
        self.wrong_lines += other.wrong_lines

    @property
    def total(self) -> int:
        """All together."""
        return self.lost + self.ghost + self.doubled + self.wrong_lines


class Indexed(Protocol):
    """What is compared with a folder."""

    @property
    def embedder(self) -> Embedder: ...
    @property
    def manifest(self) -> Manifest: ...
    @property
    def vectors(self) -> VectorStore: ...
    @property
    def texts(self) -> TextStore: ...


@dataclass(frozen=True)
class Truth:
    """What one file on disk is cut into: texts with their first and last lines."""

    hash: str
    lines: list[str]
    pieces: list[tuple[str, int, int]]

    @classmethod
    def read(cls, file: Path, tokenizer: Tokenizer, limits: Limits) -> Truth:
        """Cut a file as the indexer does."""
        content = file.read_bytes()
        text = content.decode()
        pieces = chunk_markdown(text, count=tokenizer.count, limits=limits).pieces
        found = [(piece.text, piece.start_line, piece.end_line) for piece in pieces]
        return cls(hashlib.sha256(content).hexdigest(), text.split("\n"), found)


async def compare(parts: Indexed, scope: Scope, folder: Path, chunk_tokens: int) -> Counts:
    """Count what differs between a folder and what is indexed of it."""
    limits = Limits(target_tokens=chunk_tokens, max_tokens=(await parts.embedder.info()).window)
    tokenizer = await parts.embedder.tokenizer()
    files = {file.relative_to(folder).as_posix(): Truth.read(file, tokenizer, limits) for file in folder.rglob("*.md")}
    outlines = (await parts.manifest.view(scope)).outlines
    query = await parts.embedder.embed([COMMON], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=10.0)
    terms = [QueryTerm(term) for term in analyze(COMMON)]
    by_vector = _texts(await vector_hits(parts.vectors, query.vectors[0], Filter(scope), _ALL))
    by_text = _texts(await text_hits(parts.texts, terms, Filter(scope), _ALL))
    texts = by_text | by_vector  # a chunk's text is in its id
    listed = {name for outline in outlines.values() for name in outline.by_id}
    findable = {name for name in listed if COMMON in texts.get(name, "")}
    counts = Counts(lost=len(listed - by_vector.keys()) + len(findable - by_text.keys()))
    for store in (parts.vectors, parts.texts):
        await _count(counts, store, texts, scope, files, outlines)
    return counts


def _texts(hits: Sequence[Hit]) -> dict[str, str]:
    return {hit.chunk.id: hit.chunk.text for hit in hits}


async def _count(
    counts: Counts,
    store: ChunkStore,
    texts: Mapping[str, str],
    scope: Scope,
    files: Mapping[str, Truth],
    outlines: Mapping[str, Outline],
) -> None:
    held = Counter([chunk.id async for page in store.scan(scope) for chunk in page])
    listed = {name for outline in outlines.values() for name in outline.by_id}
    counts.lost += len(listed - held.keys())
    counts.ghost += sum(held[name] for name in held.keys() - listed)
    counts.doubled += sum(number - 1 for number in held.values())
    for path in files.keys() | outlines.keys():
        truth, outline = files.get(path), outlines.get(path)
        shown = outline.chunks if outline is not None else ()
        if truth is None:
            counts.ghost += len(shown)
            continue
        expected = Counter(text for text, _, _ in truth.pieces)
        found = Counter(texts.get(each.id, "") for each in shown)
        counts.lost += (expected - found).total()
        counts.doubled += sum(max(found[text] - expected[text], 0) for text in expected)
        counts.ghost += sum(number for text, number in found.items() if text and text not in expected)
        places = set(truth.pieces)
        counts.wrong_lines += sum(
            (texts[each.id], each.start_line, each.end_line) not in places for each in shown if each.id in texts
        )


def torn(reply: SearchReply, versions: Mapping[str, str]) -> list[str]:
    """Describe the results of an answer that no state of their file holds, and files of which two states are shown."""
    hashes: dict[str, set[str]] = {}
    wrong = []
    for result in reply.results:
        hashes.setdefault(result.path, set()).add(result.file_hash)
        lines = versions.get(result.file_hash, "").split("\n")
        expected = "\n".join(lines[result.start_line - 1 : result.end_line])
        if not _shows(result.snippet, expected):
            known = "" if result.file_hash in versions else ", a state that never was"
            wrong.append(f"{result.citation} of {result.file_hash[:8]}{known}: {result.snippet!r}, not {expected!r}")
    return wrong + [f"{path}: several states in one answer" for path, each in hashes.items() if len(each) > 1]


def _shows(snippet: str, text: str) -> bool:
    """Whether a snippet is all of a chunk's text, or whole lines of one that is too long to be shown."""
    if len(text) <= MAX_CHARS:
        return snippet == text
    return 0 < len(snippet) <= MAX_CHARS and f"\n{snippet}\n" in f"\n{text}\n"
