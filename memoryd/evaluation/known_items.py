"""A set from a workspace that has no queries: known items, found by what its author says of them. No model is asked.

Three kinds of query, each of which names a file that its author would want for it: a heading (and the lines below it),
a front matter title, description, summary or alias, and the sentence around a link, for the file that it leads to. The
file that holds the link is left out of that ranking: it holds the sentence itself.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import regex

from memoryd.domain.markdown.front_matter import fields
from memoryd.domain.markdown.lines import is_blank, split_lines
from memoryd.domain.markdown.structure import Heading, parse
from memoryd.domain.paths import is_transcript
from memoryd.domain.text.stopwords import STOP_WORDS
from memoryd.errors import InvalidInputError
from memoryd.evaluation.links import linked_sentences
from memoryd.evaluation.sets import FILES, Document, Query, RetrievalSet, load, workspace_name
from memoryd.folder.listing import list_folder
from memoryd.folder.reading import FileText, read_file
from memoryd.folder.root import RootMissingError
from memoryd.folder.rules import FolderRules

_QUERIES = 400
_FIELDS = ("title", "description", "summary", "question", "aliases")
_WORD = regex.compile(r"\p{Han}|[\p{L}\p{N}]+")
_HAN = regex.compile(r"\p{Han}")
# A query says something by so many words that are no stop words, or by so many Han characters. A sentence around a link
# needs more: much of it may be the name of the file.
_WORDS = {"heading": (2, 4), "front matter": (2, 4), "link": (4, 8)}


@dataclass(frozen=True, slots=True)
class _Item:
    """A query for a file; `lines` are those that answer it, 1-based, `source` where it was found."""

    kind: str
    text: str
    document: str
    lines: tuple[int, int] | None = None
    source: str = ""


def load_or_make(folder: Path) -> RetrievalSet:
    """Read a set, or make one of a folder that has none of a set's files. Raises as `load` and `make` do."""
    is_set = any((folder / name).exists() for name in FILES)
    return load(folder) if is_set else make(folder)


def make(folder: Path, rules: FolderRules | None = None) -> RetrievalSet:
    """Make a set of at most 400 queries from a folder of Markdown, the same for the same files. Blocks.

    Raises InvalidInputError where the folder can't be listed, or no query can be made.
    """
    name = folder.resolve().name
    group = workspace_name(name)
    try:
        files = list(_files(folder, rules or FolderRules()))
    except RootMissingError as error:
        raise InvalidInputError(f"{folder} {error}: name a folder", path=str(folder)) from error
    documents = tuple(Document(path, group, path, file.text, 0) for path, file in files)
    items = _chosen(_unambiguous(_items(documents)))
    if not items:
        raise InvalidInputError(
            f"{folder} has no queries.jsonl, and no query can be made from its {len(documents)} Markdown files: "
            "they have no heading, front matter or link that says something",
            path=str(folder),
        )
    ids = {f"{item.kind}: {item.text}": item for item in items}
    return RetrievalSet(
        name=name,
        documents=documents,
        queries=tuple(Query(identifier, group, item.text, answerable=True) for identifier, item in ids.items()),
        relevant={identifier: frozenset({item.document}) for identifier, item in ids.items()},
        spans={identifier: ((item.document, *item.lines),) for identifier, item in ids.items() if item.lines},
        ignored={identifier: frozenset({item.source}) for identifier, item in ids.items() if item.source},
    )


def _files(folder: Path, rules: FolderRules) -> Iterator[tuple[str, FileText]]:
    for path, found in sorted(list_folder(folder, rules).files.items()):
        file = None if found.problem else read_file(found.root, found.name, rules, transcript=is_transcript(path))
        if isinstance(file, FileText):
            yield path, file


def _items(documents: Iterable[Document]) -> Iterator[_Item]:
    paths = {document.path for document in documents}
    for document in documents:
        lines = split_lines(document.text)
        structure = parse(lines, front_matter=True)
        for field, value in fields(lines[: structure.front_matter]).items():
            if field in _FIELDS:
                yield from (_Item("front matter", text, document.id) for text in value)
        for number, heading in enumerate(structure.headings):
            last = _section_end(structure.headings[number + 1 :], heading, lines)
            if last > heading.end:
                yield _Item("heading", heading.title, document.id, (heading.line + 1, last))
        for sentence, target in linked_sentences(document.path, lines[structure.front_matter :], paths):
            yield _Item("link", sentence, target, source=document.id)


def _section_end(later: Iterable[Heading], heading: Heading, lines: list[str]) -> int:
    """Give the last line, 1-based, of a heading's section that is not blank."""
    end = next((other.line for other in later if other.level <= heading.level), len(lines))
    while end > heading.end and is_blank(lines[end - 1]):
        end -= 1
    return end


def _unambiguous(items: Iterable[_Item]) -> Iterator[_Item]:
    """Keep what says something, and says it of one file only; of what says the same of a file the first."""
    same: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        if _says_something(item):
            same[" ".join(_words(item.text))].append(item)
    for found in same.values():
        if len({item.document for item in found}) == 1:
            yield found[0]


def _says_something(item: _Item) -> bool:
    words = [word for word in _words(item.text) if word not in STOP_WORDS and not word.isdecimal()]
    latin, han = _WORDS[item.kind]
    return len(words) >= (han if _HAN.search(item.text) else latin)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _chosen(items: Iterable[_Item]) -> list[_Item]:
    """Take at most so many: those that a hash of them chooses, so that an edit elsewhere changes few of them."""
    found = sorted(items, key=lambda item: hashlib.sha256(f"{item.kind} {item.text}".encode()).digest())
    return found[:_QUERIES]
