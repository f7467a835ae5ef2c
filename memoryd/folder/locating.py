"""Finding the file that a path means."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path


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
