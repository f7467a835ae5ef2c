"""Acting as somebody who may not read everything."""

from __future__ import annotations

import codecs
import ctypes
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_NOBODY = 65534
codecs.lookup("utf-8-sig")  # Python loads codecs when they are first used, which nobody may not be able to


def as_nobody(work: Callable[[], T]) -> T:
    """Run `work` in a thread whose file access is that of nobody, where we are root; as ourselves elsewhere.

    Linux keeps the user that file access is checked for (setfsuid) by thread.
    """
    with nobodys_threads() as thread:
        return thread.submit(work).result()


def nobodys_threads() -> ThreadPoolExecutor:
    """Make threads that act so."""
    return ThreadPoolExecutor(4, initializer=lambda: ctypes.CDLL(None).setfsuid(_NOBODY))


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a temporary folder that nobody can get into too (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for path in folder.rglob("*"):
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(folder)
