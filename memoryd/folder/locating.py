"""Finding the file that a path means."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memoryd.domain.paths import is_hidden
from memoryd.folder.rules import FolderRules


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is: its name on disk below one of a workspace's folders, through no link."""

    root: Path
    name: str


def places(root: Path, path: str, rules: FolderRules) -> Iterator[Place]:
    """Find where a path leads, in the workspace's own folder and in its further ones. Blocks.

    A name that leads into a hidden folder or out is left out. Whether a file is there is not looked at.
    """
    if rules.reads(path) and (name := locate(root, path)) is not None and not is_hidden(name):
        yield Place(root, name)
    for extra in rules.extras:
        below = extra.below(path)
        if below is not None and extra.reads(below):
            name = locate(extra.root, below)
            if name is not None and not is_hidden(name):
                yield Place(extra.root, name)


def locate(root: Path, path: str) -> str | None:
    """Find a path's name on disk, below the root and through no link. Blocks.

    None where nothing is there or it leads out of the root. A name on disk may have another Unicode form than the path,
    which is NFC.
    """
    try:
        real_root = os.path.realpath(root, strict=True)
        found: str | None = real_root
        for part in path.split("/"):
            found = _child(found, part) if found else None
        if found is None:
            return None
        real = os.path.realpath(found, strict=True)
    except OSError:
        return None
    return os.path.relpath(real, real_root) if os.path.commonpath((real, real_root)) == real_root else None


def _child(folder: str, part: str) -> str | None:
    exact = os.path.join(folder, part)  # noqa: PTH118  (pathlib drops what os.path keeps)
    if os.path.lexists(exact):
        return exact
    if part.isascii():
        return None
    names = sorted(name for name in os.listdir(folder) if unicodedata.normalize("NFC", name) == part)  # noqa: PTH208
    return os.path.join(folder, names[0]) if names else None  # noqa: PTH118
