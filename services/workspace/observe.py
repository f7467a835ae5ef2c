"""Looking at one file: what is on disk becomes a file state."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from memoryd.domain.files import FileKey, FileState, Problem
from memoryd.domain.paths import is_hidden
from memoryd.folder.listing import Listing, Signature
from memoryd.folder.locating import locate
from memoryd.folder.reading import read_file
from memoryd.folder.root import check_identity
from memoryd.folder.rules import FolderRules


@dataclass(frozen=True, slots=True)
class Observed:
    """A file's state, and the signature by which it can be trusted to be still the same; None: not by any."""

    state: FileState
    signature: Signature | None = None


def observe(root: Path, key: FileKey, listing: Listing, rules: FolderRules) -> Observed:
    """Read a listed file; one that vanished since is deleted. Blocks.

    Raises RootMissingError where the whole folder vanished.
    """
    found = listing.files[key.path]
    file = found.problem or read_file(root, found.name, rules.max_bytes)
    if file is None:
        check_identity(root, listing.root)
        return Observed(FileState.deletion(key, time.time()))
    if isinstance(file, Problem):
        modified = found.signature.modified_ns / 1e9
        return Observed(FileState(key, "", None, modified, private=found.private, problem=file), found.signature)
    content = file.text.encode()
    state = FileState(key, file.hash, content, file.modified, private=found.private, lossy=file.lossy)
    return Observed(state, file.signature)


def observe_unlisted(root: Path, key: FileKey, listing: Listing, rules: FolderRules) -> Observed | None:
    """Look after a file of the log that the listing lacks. Blocks. None: it came back since, and will be listed."""
    if any(key.path.startswith(f"{folder}/") for folder in listing.unreadable):
        problem = Problem("UNREADABLE", "its folder can't be listed")
        return Observed(FileState(key, "", None, time.time(), problem=problem))
    if key.path not in listing.aliases and rules.reads(key.path):
        name = locate(root, key.path)
        if name is not None and not is_hidden(name) and _is_file(root / name):
            return None
    return Observed(FileState.deletion(key, time.time()))


def _is_file(path: Path) -> bool:
    try:
        return S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
