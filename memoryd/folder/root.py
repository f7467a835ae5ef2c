"""The folder itself: whether it is there."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISDIR

from memoryd.domain.files import Problem

ROOT_MISSING = "ROOT_MISSING"
ROOT_EMPTY = "ROOT_EMPTY"


class RootMissingError(Exception):
    """The workspace's folder can't be read as a whole: nothing may be concluded about its files."""

    @property
    def problem(self) -> Problem:
        """The same for a caller; without the folder's path, which is the operator's business."""
        return Problem(ROOT_MISSING, f"the workspace's folder {self}; bring it back, or correct its configured path")


class RootEmptyError(RootMissingError):
    """There is nothing at all in a folder whose files are known, as where a volume is not mounted."""

    @property
    def problem(self) -> Problem:
        """The same for a caller."""
        return Problem(ROOT_EMPTY, f"the workspace's folder {self}; bring them back, or put a file in it to confirm")


def identify_root(root: Path) -> tuple[int, int]:
    """Tell this folder from another one of the same name (device and inode). Raises RootMissingError."""
    try:
        status = root.stat()
    except OSError as error:
        raise RootMissingError(reason(error)) from error
    if not S_ISDIR(status.st_mode):
        message = "is not a folder"
        raise RootMissingError(message)
    return status.st_dev, status.st_ino


def check_identity(root: Path, identity: tuple[int, int]) -> None:
    """Raise RootMissingError unless it is still the same folder."""
    if identify_root(root) != identity:
        message = "was replaced while it was being read"
        raise RootMissingError(message)


def root_problem(root: Path) -> Problem | None:
    """Say why a workspace's folder can't be read now, or None where it can."""
    try:
        identify_root(root)
        os.scandir(root).close()
    except RootMissingError as error:
        return error.problem
    except OSError as error:
        return RootMissingError(reason(error)).problem
    return None


def reason(error: OSError) -> str:
    """Say what an operating system error means for a folder, without its path."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist"
    return f"can't be read ({error.strerror})"
