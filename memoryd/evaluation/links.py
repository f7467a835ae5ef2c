"""Links between the files of a workspace, with the sentences that they stand in."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table")
_WIKI = regex.compile(r"\[\[([^\[\]|#]+)(?:#[^\[\]|]*)?(?:\|([^\[\]]*))?\]\]")
_SENTENCE_END = regex.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n")
_SHORTEST = 12  # characters: a sentence that is the link alone says little more than the file's name


def linked_sentences(path: str, lines: Sequence[str], paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Find the sentences of a file that link to one other file of `paths`, as plain text, with that file.

    Links are Markdown's, relative to the file or to the workspace, and `[[name]]`, `[[path|text]]`.
    """
    by_stem: dict[str, list[str]] = defaultdict(list)
    for each in paths:
        by_stem[PurePosixPath(each).stem.casefold()].append(each)
    for token in _PARSER.parse("\n".join(lines)):
        if token.type == "inline":
            yield from _sentences(path, token, paths, by_stem)


def _sentences(
    path: str, token: Token, paths: Collection[str], by_stem: dict[str, list[str]]
) -> Iterator[tuple[str, str]]:
    text, targets = "", []  # where a link begins in the text, and the file it leads to
    for child in token.children or []:
        if child.type == "link_open":
            targets.append((len(text), _relative(path, str(child.attrGet("href") or ""), paths)))
        elif child.type in {"softbreak", "hardbreak"}:
            text += "\n"
        elif child.type == "text":
            last = 0
            for match in _WIKI.finditer(child.content):
                text += child.content[last : match.start()]
                targets.append((len(text), _wiki(path, match[1].strip(), paths, by_stem)))
                text += match[2] or PurePosixPath(match[1]).stem
                last = match.end()
            text += child.content[last:]
        else:
            text += child.content
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = " ".join(text[start:end].split())
        found = {target for where, target in targets if start <= where < end and target not in {None, path}}
        if len(found) == 1 and len(sentence) >= _SHORTEST:
            (target,) = found
            if target:
                yield sentence, target
        start = end


def _relative(path: str, href: str, paths: Collection[str]) -> str | None:
    """Give the file that a link leads to; None outside of the workspace."""
    target = unquote(href.partition("#")[0])
    if not target or ":" in target:
        return None
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return next((each for each in (beside, target.lstrip("/")) if each in paths), None)


def _wiki(path: str, name: str, paths: Collection[str], by_stem: dict[str, list[str]]) -> str | None:
    for each in (name, f"{name}.md"):
        if found := _relative(path, each, paths):
            return found
    same = by_stem.get(PurePosixPath(name).stem.casefold(), [])
    return same[0] if len(same) == 1 and "/" not in name else None
