"""The data directory of a standalone: its format, its lock, and where its parts are."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import orjson

from memoryd.errors import ConfigError, DataError, UnavailableError

FORMAT = 1

_LOCK = "lock"
_FORMAT_FILE = "format.json"
_NEW_FORMAT_FILE = "format.json.new"


@dataclass(frozen=True, slots=True)
class GenerationPaths:
    """Where the parts of a generation are."""

    root: Path

    @property
    def manifest(self) -> Path:
        """The manifest, a file."""
        return self.root / "manifest.db"

    @property
    def vectors(self) -> Path:
        """The vector store, a folder."""
        return self.root / "vectors"

    @property
    def text(self) -> Path:
        """The text store, a folder."""
        return self.root / "text"


class DataDirectory:
    """An open data directory, locked against other processes until it is closed."""

    def __init__(self, root: Path, lock: int) -> None:
        self.root = root
        self._lock = lock

    @classmethod
    def open(cls, root: Path) -> DataDirectory:
        """Lock a data directory, after making it (mode 0700) where it does not exist.

        Raises ConfigError where it can't be used (no directory, not writable, used by another process) and DataError
        where it is of another format or holds something else.
        """
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(
                f"can't use {root} as data directory ({error.strerror}): choose a directory that memoryd may write to",
            ) from error
        try:
            _take(lock, root)
            _check_format(root)
        except BaseException:
            os.close(lock)
            raise
        return cls(root, lock)

    @property
    def filelog(self) -> Path:
        """The file log."""
        return self.root / "filelog.db"

    @property
    def keys(self) -> Path:
        """The key store."""
        return self.root / "keys.db"

    @property
    def registry(self) -> Path:
        """The registry of generations."""
        return self.root / "generations.db"

    def generation(self, generation_id: str) -> GenerationPaths:
        """Give the paths of a generation's parts; its folder exists afterwards."""
        root = self.root / "generations" / generation_id
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return GenerationPaths(root)

    def generations(self) -> list[str]:
        """List the ids of the generations that have a folder, sorted."""
        parent = self.root / "generations"
        return sorted(entry.name for entry in parent.iterdir() if entry.is_dir()) if parent.is_dir() else []

    async def erase(self, generation_id: str) -> None:
        """Remove a generation's folder; nothing where there is none."""
        root = self.root / "generations" / generation_id
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)
        if root.exists():
            raise UnavailableError(f"{root} can't be removed: check who holds it open, and its permissions")

    async def disk_bytes(self) -> int:
        """Measure what the directory takes on the disk, in bytes; sparse files count as what they really take."""
        return await asyncio.to_thread(bytes_on_disk, self.root)

    def close(self) -> None:
        """Give the lock up. May be called twice."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _take(lock: int, root: Path) -> None:
    """Lock, and leave our process id for the message that another one prints. The lock ends with the process."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        raise ConfigError(
            f"data directory {root} is in use by process {holder}: stop it, or choose another directory",
            reason="DATA_DIRECTORY_LOCKED",
            pid=holder,
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _check_format(root: Path) -> None:
    path = root / _FORMAT_FILE
    if not path.exists():
        if foreign := sorted(entry.name for entry in root.iterdir() if entry.name not in {_LOCK, _NEW_FORMAT_FILE}):
            raise DataError(
                f"{root} holds {foreign[0]} but no {_FORMAT_FILE}, so it is no data directory of memoryd: "
                "choose an empty directory or one that does not exist",
            )
        _write_format(root)
    try:
        found = orjson.loads(path.read_bytes())["format"]
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"{path} is damaged: restore the data directory from a backup, or move it away and let memoryd index anew",
        ) from None
    if found != FORMAT:
        raise DataError(
            f"data directory {root} has format {found!r}, this memoryd reads format {FORMAT}: "
            "run the version of memoryd that wrote it, or choose another directory and let memoryd index anew",
        )


def _write_format(root: Path) -> None:
    """Write the format file whole or not at all."""
    new = root / _NEW_FORMAT_FILE
    with new.open("wb") as file:
        file.write(orjson.dumps({"format": FORMAT}))
        file.flush()
        os.fsync(file.fileno())
    new.rename(root / _FORMAT_FILE)


def bytes_on_disk(root: Path) -> int:
    """Count what the files of a folder take, as the disk has them. Blocks."""
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118  (os.walk gives strings)
            except FileNotFoundError:
                continue  # removed meanwhile: engines merge and drop files at any time
    return total
