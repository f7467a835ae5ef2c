"""Looking at one file: what is on disk becomes a file state."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from memoryd.domain.files import FileKey, FileState, Problem, Source
from memoryd.domain.paths import is_transcript
from memoryd.folder.listing import FoundFile, Listing, Signature
from memoryd.folder.locating import places
from memoryd.folder.reading import read_file
from memoryd.folder.root import RootMissingError, check_identity
from memoryd.folder.rules import FolderRules


@dataclass(frozen=True, slots=True)
class Observed:
    """A file's state, and the signature by which it can be trusted to be still the same; None: not by any."""

    state: FileState
    signature: Signature | None = None


def observe(root: Path, key: FileKey, listing: Listing, rules: FolderRules) -> Observed:
    """Read a listed file; one that vanished since is deleted. Blocks.

    Raises RootMissingError where the workspace's whole folder vanished.
    """
    found = listing.files[key.path]
    transcript = is_transcript(found.path)
    source = Source.SESSIONS if transcript else Source.MEMORY
    file = found.problem or read_file(found.root, found.name, rules, transcript=transcript)
    if file is None:
        check_identity(root, listing.root)
        return Observed(_gone(key) if _root_stands(root, found, listing) else _unlisted(key))
    if isinstance(file, Problem):
        modified = found.signature.modified_ns / 1e9
        return Observed(FileState(key, "", None, modified, source, found.private, problem=file), found.signature)
    state = FileState(
        key=key,
        hash=file.hash,
        content=file.text.encode(),
        modified=file.modified,
        source=source,
        private=found.private,
        lossy=file.lossy,
        evergreen=found.evergreen,
    )
    return Observed(state, file.signature)


def observe_unlisted(root: Path, key: FileKey, listing: Listing, rules: FolderRules) -> Observed | None:
    """Look after a file of the log that the listing lacks. Blocks. None: it came back since, and will be listed."""
    if any(key.path.startswith(f"{folder}/") for folder in listing.unreadable):
        return Observed(_unlisted(key))
    if key.path not in listing.aliases and any(
        _is_file(place.root / place.name) for place in places(root, key.path, rules)
    ):
        return None
    return Observed(_gone(key))


def _gone(key: FileKey) -> FileState:
    return FileState.deletion(key, time.time())


def _unlisted(key: FileKey) -> FileState:
    return FileState(key, "", None, time.time(), problem=Problem("UNREADABLE", "its folder can't be listed"))


def _root_stands(root: Path, found: FoundFile, listing: Listing) -> bool:
    """Whether a further folder is still the one that was listed; of the workspace's own that is known."""
    if found.root == root:
        return True
    try:
        check_identity(found.root, listing.extras[found.path.partition("/")[0]])
    except RootMissingError:
        return False
    return True


def _is_file(path: Path) -> bool:
    try:
        return S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
