"""Whether the system really watches every folder: what its queue drops, the library does not tell.

A lost event loses no change: the next one has the folder compared as a whole. But where a new folder's own event was
lost, nobody watches it, and what happens in it stays unseen until the interval.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from memoryd.domain.paths import is_hidden

_DESCRIPTORS = Path("/proc/self/fdinfo")  # of an inotify descriptor it lists the watches, see proc_pid_fdinfo(5)


def unwatched(roots: Iterable[str]) -> frozenset[str]:
    """List the readable folders, hidden ones left out, that no watch of this process is on. Blocks.

    None of a root that seems unwatched itself: there the system has no such list, or other numbers than a file's status
    (as some overlay file systems do), or the root has just been replaced, which is noticed elsewhere.
    """
    watched = _watched_inodes()
    return frozenset(
        folder
        for root in roots
        if _inode(root) in watched
        for folder in _folders(root)
        if _inode(folder) not in watched
    )


def _watched_inodes() -> frozenset[int]:
    inodes = set()
    try:
        descriptors = list(_DESCRIPTORS.iterdir())
    except OSError:
        return frozenset()
    for descriptor in descriptors:
        try:
            lines = descriptor.read_text().splitlines()
        except OSError:  # closed meanwhile
            continue
        for line in lines:
            if line.startswith("inotify "):
                fields = dict(field.split(":", 1) for field in line.split() if ":" in field)
                inodes.add(int(fields["ino"], 16))
    return frozenset(inodes)


def _folders(root: str) -> Iterable[str]:
    for folder, names, _ in os.walk(root):
        yield folder
        names[:] = [name for name in names if not is_hidden(name)]


def _inode(folder: str) -> int:
    try:
        return Path(folder).stat().st_ino
    except OSError:
        return -1
