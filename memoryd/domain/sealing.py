"""Sealing: the tombstone of a purged file keeps its place in log and manifest, but not its path.

A key that was removed would let a late writer, who read that there is nothing, revive the file, and a workspace's
sequence would go back. So the tombstone stays, under a hash of the path: whoever comes with the path still finds it,
and its revision is still the base of the next compare-and-set. Who guesses a path can check whether it was there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from memoryd.domain.files import FileKey

T = TypeVar("T")

# No path of a file begins with it (`memoryd.domain.paths`).
_MARK = "/"


def path_hash(path: str) -> str:
    """Hash a path, or take the hash that stands for it: BLAKE2b, 128 bits, hex."""
    return path.removeprefix(_MARK) if is_sealed(path) else hashlib.blake2b(path.encode(), digest_size=16).hexdigest()


def sealed(path: str) -> str:
    """Give what stands for a path in a sealed tombstone; of such a one itself."""
    return _MARK + path_hash(path)


def is_sealed(path: str) -> bool:
    """Whether a path is only what stands for one."""
    return path.startswith(_MARK)


def sealed_key(key: FileKey) -> FileKey:
    """Give the key of a file's sealed tombstone."""
    return replace(key, path=sealed(key.path))


def merged(base: Mapping[str, T], changed: Mapping[str, T]) -> dict[str, T]:
    """Put changes over what is known by path, so that each file is there once, under its path or sealed."""
    gone = {sealed(path) for path in changed if not is_sealed(path)}
    if any(map(is_sealed, changed)):
        gone.update(path for path in base if sealed(path) in changed)
    return {**{path: value for path, value in base.items() if path not in gone}, **changed}


def find(known: Mapping[str, T], path: str) -> T | None:
    """Look a file up, under its path or sealed."""
    found = known.get(path)
    return known.get(sealed(path)) if found is None else found
