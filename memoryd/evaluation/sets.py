"""Reading retrieval sets: a folder with corpus.jsonl, queries.jsonl, qrels.tsv and, optionally, spans.tsv."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import regex

from memoryd.domain.paths import is_hidden
from memoryd.errors import InvalidInputError

FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
# File systems take 255 bytes, and ".md" comes on top.
_LONGEST_PART = 200
_UNSAFE = regex.compile(r"[^\p{L}\p{N}._ -]+")


@dataclass(frozen=True, slots=True)
class Document:
    """A document as a workspace file.

    Attributes:
        id: as the judgements name it.
        group: the workspace.
        path: relative to the workspace.
        text: the file's content.
        shift: lines that the title put in front.
    """

    id: str
    group: str
    path: str
    text: str
    shift: int


@dataclass(frozen=True, slots=True)
class Query:
    """A query; `group` is the workspace to search, `answerable` whether the set holds an answer."""

    id: str
    group: str
    text: str
    answerable: bool


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """A set of documents, queries and judgements.

    Attributes:
        name: of the folder.
        documents: all of them.
        queries: all of them.
        relevant: document ids by query id.
        spans: by query id: (document id, first line, last line), 1-based lines of the document's own text.
        ignored: by query id: documents that are neither right nor wrong, and taken out of the ranking.
    """

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    relevant: Mapping[str, frozenset[str]]
    spans: Mapping[str, tuple[tuple[str, int, int], ...]]
    ignored: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """The workspaces that the set needs."""
        return sorted({document.group for document in self.documents})


def load(folder: Path) -> RetrievalSet:
    """Read a set. Raises InvalidInputError that names the file and line that can't be used."""
    for name in FILES:
        if not (folder / name).is_file():
            raise InvalidInputError(
                f"{folder} is not a retrieval set: it has no {name} (needed: {', '.join(FILES)})",
                path=str(folder),
            )
    relevant: dict[str, set[str]] = defaultdict(set)
    for query, document, judgement, *_ in _rows(folder / "qrels.tsv", 3):
        if int(judgement) > 0:
            relevant[query].add(document)
    spans: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    if (folder / "spans.tsv").is_file():
        for query, document, first, last, *_ in _rows(folder / "spans.tsv", 4):
            spans[query].append((document, int(first), int(last)))
    return RetrievalSet(
        name=folder.resolve().name,
        documents=tuple(_documents(folder)),
        queries=tuple(_queries(folder)),
        relevant={query: frozenset(documents) for query, documents in relevant.items()},
        spans={query: tuple(found) for query, found in spans.items()},
    )


def write(data: RetrievalSet, folder: Path) -> None:
    """Write a set's documents as files below `folder`, a folder a group; what is there already is left untouched."""
    for document in data.documents:
        path = folder / document.group / document.path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = document.text.encode()
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


def _documents(folder: Path) -> Iterator[Document]:
    taken: set[tuple[str, str]] = set()
    single = workspace_name(folder.resolve().name)
    for entry in _lines(folder / "corpus.jsonl", "id", "text"):
        group, path = workspace_name(str(entry.get("group") or single)), _path(entry["id"])
        if (group, path) in taken:
            path = f"{path.removesuffix('.md')}-{hashlib.sha256(entry['id'].encode()).hexdigest()[:8]}.md"
        taken.add((group, path))
        text, title = entry["text"], str(entry.get("title") or "").strip()
        # A title that the text lacks becomes its first heading.
        heading = f"# {title}\n\n" if title and title not in text else ""
        yield Document(entry["id"], group, path, heading + text, heading.count("\n"))


def _queries(folder: Path) -> Iterator[Query]:
    single = workspace_name(folder.resolve().name)
    for entry in _lines(folder / "queries.jsonl", "id", "text"):
        group = workspace_name(str(entry.get("group") or single))
        yield Query(entry["id"], group, entry["text"], bool(entry.get("answerable", True)))


def workspace_name(group: str) -> str:
    """Name the workspace of a group; a set without groups is one group, named as the set."""
    return regex.sub(r"[^a-z0-9-]+", "-", group.lower())[:63].strip("-") or "set"


def _path(identifier: str) -> str:
    """Make an id a valid path of Markdown: `a/b c?.md` keeps its folders and loses what a path can't hold."""
    parts = [_part(part) for part in unicodedata.normalize("NFC", identifier).split("/")]
    path = "/".join(part for part in parts if part) or "document"
    return path if path.endswith(".md") else f"{path}.md"


def _part(part: str) -> str:
    part = _UNSAFE.sub("_", part).strip(". ")
    if len(part.encode()) > _LONGEST_PART:
        digest = hashlib.sha256(part.encode()).hexdigest()[:8]
        part = f"{part[: _LONGEST_PART // 4]}-{digest}"
    return f"_{part}" if part and is_hidden(f"{part}/x.md") else part


def _lines(path: Path, *required: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                missing = [name for name in required if not isinstance(entry[name], str)]
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInputError(
                    f"{path}, line {number}: not a JSON object with {' and '.join(required)} ({error})", path=str(path)
                ) from error
            if missing:
                raise InvalidInputError(f"{path}, line {number}: {', '.join(missing)} must be text", path=str(path))
            yield entry


def _rows(path: Path, columns: int) -> Iterator[list[str]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = line.rstrip("\r\n").split("\t")
            if number == 1 and len(row) >= columns and not row[2].isdigit():
                continue  # BEIR's files begin with the columns' names
            if len(row) < columns or not all(cell.isdigit() for cell in row[2:columns]):
                raise InvalidInputError(
                    f"{path}, line {number}: needs {columns} tab-separated columns, whole numbers from the third on",
                    path=str(path),
                )
            yield row
