"""Breadcrumbs: the headings above a piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoryd.domain.chunking.limits import Count, count_all
from memoryd.domain.markdown.structure import Heading

_SEPARATOR = " > "
_TITLE_CHARS = 80
_CHARS = 200

Path = tuple[str, ...]
"""The titles of a section and of those around it, outermost first."""


def section_paths(headings: Sequence[Heading], title: str) -> list[Path]:
    """List the paths of a file's sections; the first one is before every heading.

    `title` stands in for a heading of level 1 where the file has none.
    """
    root = (title,) if title and all(heading.level > 1 for heading in headings) else ()
    paths: list[Path] = [root]
    stack: list[Heading] = []
    for heading in headings:
        while stack and stack[-1].level >= heading.level:
            stack.pop()
        stack.append(heading)
        paths.append((*root, *(around.title for around in stack if around.title)))
    return paths


def common_path(paths: Iterable[Path]) -> Path:
    """Find the titles that all paths begin with."""
    distinct = sorted(set(paths))
    # What the first and the last in order share, those between share too.
    shared = 0
    for first, last in zip(distinct[0], distinct[-1], strict=False):
        if first != last:
            break
        shared += 1
    return distinct[0][:shared]


def breadcrumbs(paths: Iterable[Path], count: Count, max_tokens: int) -> dict[Path, str]:
    """Join paths to breadcrumbs of at most 200 characters and `max_tokens` tokens, leaving out titles in the middle.

    Where the innermost title alone is too long there is none.
    """
    crumbs = {path: _join(path) for path in paths}
    unsure = [path for path, crumb in crumbs.items() if crumb]
    for kept in (1, 0):
        counts = count_all(count, (crumbs[path] for path in unsure))
        unsure = [path for path, tokens in zip(unsure, counts, strict=True) if tokens > max_tokens]
        for path in unsure:
            crumbs[path] = _join(path[len(path) - kept :])
    return crumbs


def _join(path: Path) -> str:
    titles = [title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1] + "…" for title in path]
    while len(titles) > 2 and len(_SEPARATOR.join(titles)) > _CHARS:  # noqa: PLR2004  (the outermost, the innermost)
        del titles[1]
    return _SEPARATOR.join(titles)
