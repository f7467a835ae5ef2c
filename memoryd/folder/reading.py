"""Reading one file of a folder: contained, stable, decoded."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from stat import S_ISREG

from memoryd.domain.files import Problem
from memoryd.domain.sessions.transcripts import render
from memoryd.folder.listing import Signature
from memoryd.folder.rules import FolderRules

TOO_LARGE = "TOO_LARGE"
_ATTEMPTS = 3
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
# A file that is changed twice within one tick of the clock keeps its signature; the coarsest clock in use is FAT's.
_TICK_NS = 2 * 10**9
# A text of which more is undecodable is none. The share is that of Perl's file test -B.
_UNDECODABLE = 0.3


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was read.

    Attributes:
        text: decoded; of a transcript, what may be kept of it.
        hash: SHA-256 of the bytes, hex; of a transcript, of its text: so it changes when the text does, and what was
            redacted can't be found out by trying.
        lossy: some bytes were not UTF-8 and were replaced.
        modified: Unix seconds.
        inode: device and inode.
        names: how many names the file has.
        signature: None where a later change might leave it as it is.
    """

    text: str
    hash: str
    lossy: bool
    modified: float
    inode: tuple[int, int]
    names: int
    signature: Signature | None


def read_file(root: Path, name: str, rules: FolderRules, *, transcript: bool = False) -> FileText | Problem | None:
    """Read a file by its name on disk, which must lead through no link. Blocks, but never on a pipe.

    Reads again where the file changed meanwhile. Returns None where it is not there, or a link has taken its place. Of
    a transcript only what `render` lets pass leaves this function.
    """
    limit, setting = (
        (rules.max_transcript_bytes, "max_transcript_bytes") if transcript else (rules.max_bytes, "max_file_bytes")
    )
    try:
        for attempt in count(1):
            before, data, after = _read(root, name, limit)
            if not S_ISREG(before.st_mode):
                return Problem("UNREADABLE", "it is not a regular file")
            if max(before.st_size, len(data)) > limit:
                return Problem(TOO_LARGE, f"it has more than {limit} bytes; split it, or raise {setting}")
            stable = Signature.of(before) == Signature.of(after) and len(data) == after.st_size
            if stable or attempt == _ATTEMPTS:
                return (
                    _transcript(data, after, rules, stable=stable)
                    if transcript
                    else _decoded(data, after, stable=stable)
                )
    except OSError as error:
        return None if error.errno in _GONE else Problem("UNREADABLE", f"it can't be read ({error.strerror})")
    return None  # never reached: count() has no end


def count_messages(root: Path, name: str, offset: int, length: int) -> int:
    """Count the messages in a part of a transcript, as far as it can be read. Blocks."""
    try:
        with open(open_contained(root, name), "rb") as file:
            file.seek(offset)
            return render(file.read(length).split(b"\n")).messages
    except OSError:
        return 0


def open_contained(root: Path, name: str) -> int:
    """Open a file below a folder for reading, following no link on the way, and give its descriptor.

    What was checked before may have been replaced by a link since; this can't be led out. Raises OSError.
    """
    *folders, last = name.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
            above, folder = folder, os.open(part, flags, dir_fd=folder)
            os.close(above)
        return os.open(last, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)


def decode(data: bytes) -> tuple[str, bool] | Problem:
    """Decode a Markdown file: its text without a byte order mark, and whether bytes were replaced."""
    if b"\0" in data:
        return Problem("BINARY", "it contains NUL bytes, so it is no text")
    try:
        return data.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", errors="replace")
    if text.count("\ufffd") > _UNDECODABLE * len(text):
        return Problem("BINARY", "most of it is not UTF-8: convert it, if it is text")
    return text, True


def _read(root: Path, name: str, max_bytes: int) -> tuple[os.stat_result, bytes, os.stat_result]:
    """Read a regular file within the limit once; with its status before and after."""
    with open(open_contained(root, name), "rb") as file:
        before = os.fstat(file.fileno())
        readable = S_ISREG(before.st_mode) and before.st_size <= max_bytes
        data = file.read(max_bytes + 1) if readable else b""
        return before, data, os.fstat(file.fileno())


def _decoded(data: bytes, status: os.stat_result, *, stable: bool) -> FileText | Problem:
    decoded = decode(data)
    if isinstance(decoded, Problem):
        return decoded
    text, lossy = decoded
    return _file_text(text, data, status, lossy=lossy, stable=stable)


def _transcript(data: bytes, status: os.stat_result, rules: FolderRules, *, stable: bool) -> FileText | Problem:
    text = render(data.split(b"\n")).text
    kept = text.encode()
    if len(kept) > rules.max_bytes:
        return Problem(TOO_LARGE, f"its messages have more than {rules.max_bytes} bytes; raise max_file_bytes")
    return _file_text(text, kept, status, lossy=False, stable=stable)


def _file_text(text: str, data: bytes, status: os.stat_result, *, lossy: bool, stable: bool) -> FileText:
    settled = stable and time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _TICK_NS
    return FileText(
        text=text,
        hash=hashlib.sha256(data).hexdigest(),
        lossy=lossy,
        modified=status.st_mtime,
        inode=(status.st_dev, status.st_ino),
        names=status.st_nlink,
        signature=Signature.of(status) if settled else None,
    )
