"""Copies of a data directory: of what nothing else holds. Indexes are not in it: they are built from the file log."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import orjson

from memoryd.adapters.embedded import filelog_tables
from memoryd.adapters.embedded.datadir import FORMAT, DataDirectory
from memoryd.errors import DAMAGED, ConfigError, DataError, ResourceExhaustedError

FILES = ("filelog.db", "keys.db")
"""The file log (every file's last state, deletions and blocks) and the API keys (their hashes)."""
_INVENTORY = "backup.json"
_PIECE = 1 << 20
_BUSY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy: when it was made (Unix seconds), by which version, and how large it is."""

    created: float
    version: str
    bytes: int


def back_up(data_dir: Path, target: Path) -> Copy:
    """Copy a data directory into one file, whether or not a server uses it now. Blocks.

    Each database is copied as it was at one moment. Raises ConfigError where there is nothing to copy or `target` can't
    be written, DataError where a database is damaged.
    """
    if not (data_dir / "format.json").is_file():
        raise ConfigError(f"{data_dir} is no data directory of memoryd: name one with --data-dir")
    if target.exists():
        raise ConfigError(f"{target} exists already: choose another name, or remove it")
    with _writing(target) as new, tempfile.TemporaryDirectory(dir=target.parent, prefix=".memoryd-backup-") as place:
        found: dict[str, dict[str, Any]] = {}
        for name in FILES:
            if (data_dir / name).is_file():
                copied = Path(place, name)
                _copy_database(data_dir / name, copied)
                found[name] = {"sha256": _digest(copied), "bytes": copied.stat().st_size}
        inventory: dict[str, Any] = {
            "format": FORMAT,
            "version": version("memoryd"),
            "created": time.time(),
            "files": found,
        }
        with tarfile.open(fileobj=new, mode="w") as archive:
            _add(archive, _INVENTORY, orjson.dumps(inventory))
            for name in found:
                archive.add(Path(place, name), arcname=name, filter=_plain)
    size = target.stat().st_size
    return Copy(inventory["created"], inventory["version"], size)


def restore(source: Path, data_dir: Path) -> Copy:
    """Make a data directory of a copy. Blocks.

    It appears whole or not at all, and its file log begins a new epoch: revisions may have been given since the copy
    was made. Raises ConfigError where `data_dir` holds something, DataError where the copy is none, or damaged.
    """
    if data_dir.exists() and (not data_dir.is_dir() or any(data_dir.iterdir())):
        raise ConfigError(f"{data_dir} is not empty: restore into an empty directory, or one that does not exist")
    parent = data_dir.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=parent, prefix=".memoryd-restore-"))  # mode 0700
    except OSError as error:
        raise ConfigError(f"can't write beside {data_dir} ({error.strerror}): choose another directory") from error
    try:
        DataDirectory.open(place).close()
        inventory = _extract(source, place)
        if (place / FILES[0]).exists():
            _begin_epoch(place / FILES[0])
        if data_dir.exists():
            data_dir.rmdir()
        place.rename(data_dir)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return Copy(inventory["created"], inventory["version"], source.stat().st_size)


@contextmanager
def _writing(target: Path) -> Iterator[IO[bytes]]:
    """Write a file for its owner alone, whole or not at all."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".memoryd-backup-")
    except OSError as error:
        raise ConfigError(f"can't write {target} ({error.strerror}): choose another place") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).rename(target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise ResourceExhaustedError(
            f"can't write {target} ({error.strerror}): free some space, or choose another place"
        ) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite file as it is at one moment; its writer goes on meanwhile."""
    try:
        with (
            closing(sqlite3.connect(source, timeout=_BUSY_SECONDS)) as one,
            closing(sqlite3.connect(target, timeout=_BUSY_SECONDS)) as other,
        ):
            one.backup(other)
    except sqlite3.Error as error:
        raise DataError(f"{source} can't be copied: it is damaged, or its disk fails") from error


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Keep nothing of who made the copy."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _extract(source: Path, place: Path) -> dict[str, Any]:
    """Take the files that we know out of a copy, by name, and compare them with its inventory."""
    try:
        with tarfile.open(source, mode="r:") as archive:
            inventory: dict[str, Any] = orjson.loads(_member(archive, _INVENTORY).read())
            if inventory["format"] != FORMAT:
                raise DataError(
                    f"{source} holds a data directory of format {inventory['format']!r}, this memoryd reads format "
                    f"{FORMAT}: restore it with memoryd {inventory['version']}"
                )
            for name in FILES:
                if name in inventory["files"]:
                    with (place / name).open("xb") as file:
                        shutil.copyfileobj(_member(archive, name), file, _PIECE)
                        os.fchmod(file.fileno(), 0o600)
                        os.fsync(file.fileno())
                    if _digest(place / name) != inventory["files"][name]["sha256"]:
                        raise DataError(f"{name} in {source} is damaged: use another copy", reason=DAMAGED)
    except OSError as error:
        raise ConfigError(f"{source} can't be restored ({error.strerror or error})") from error
    except (tarfile.TarError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{source} is no copy made by `memoryd backup`, or it is damaged", reason=DAMAGED) from error
    return inventory


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file


def _begin_epoch(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found != filelog_tables.SCHEMA.version and found not in filelog_tables.SCHEMA.upgrades:
            raise DataError(f"the copy's file log has format {found}: restore it with the version that made the copy")
        connection.execute("BEGIN IMMEDIATE")
        filelog_tables.restored(connection, time.time())
        connection.execute("COMMIT")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
