"""Listing a folder: every file that belongs to the workspace, under one name each."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from memoryd.domain.files import Problem
from memoryd.domain.paths import PathError, check_path, is_hidden, is_private
from memoryd.folder.root import RootMissingError, check_identity, identify_root, reason
from memoryd.folder.rules import Extra, FolderRules


@dataclass(frozen=True, slots=True)
class Signature:
    """What a file's status says about its content: equal signatures mean that it need not be read again."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        """Take it from a file's status."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the workspace.

    Attributes:
        path: its key's path: NFC.
        root: the folder that it is in: the workspace's own, or a further one.
        name: its path on disk below the root, through no link.
        signature: tells a changed file from an unchanged one.
        private: withheld in chats that are not direct, under any of its names.
        problem: why it can't be read whatever is in it.
        evergreen: see `FileState`.
    """

    path: str
    root: Path
    name: str
    signature: Signature
    private: bool
    problem: Problem | None = None
    evergreen: bool = True


@dataclass(frozen=True, slots=True)
class Listing:
    """What the folders of a workspace held.

    Attributes:
        root: which folder the workspace's own one was, see `identify_root`.
        extras: the same of its further folders that could be listed, by name.
        files: by path.
        aliases: paths that are further names of a listed file.
        unreadable: paths of folders that could not be listed: what is in them is unknown. Each is also one of `files`,
            under its path with a slash at the end, so that it is seen.
    """

    root: tuple[int, int]
    extras: Mapping[str, tuple[int, int]]
    files: Mapping[str, FoundFile]
    aliases: frozenset[str]
    unreadable: tuple[str, ...]

    def without(self, folders: Sequence[str]) -> Listing:
        """The same, but for further folders that are not to be believed."""
        if not folders:
            return self
        files = {**self.files, **{f"{folder}/": _unlistable(folder) for folder in folders}}
        return replace(self, files=files, unreadable=(*self.unreadable, *folders))


@dataclass(frozen=True, slots=True)
class _Name:
    """One name of a file. `linked`: a symlink, so `name` is where it leads and `path` where it is."""

    path: str
    extra: Extra | None
    name: str
    linked: bool
    status: os.stat_result
    problem: Problem | None


def list_folder(root: Path, rules: FolderRules) -> Listing:
    """List a workspace's folders. Blocks.

    Symlinks to folders are not followed: what is inside is found under its own name, and what is outside is not read.
    Raises RootMissingError where the workspace's own folder can't be listed, or was replaced meanwhile; a further
    folder of which this is true counts as unreadable.
    """
    identity, names, unreadable = _walked(root, rules, None)
    extras = {}
    for extra in rules.extras:
        try:
            extras[extra.name], more, failed = _walked(extra.root, rules, extra)
        except RootMissingError:
            unreadable.add(extra.name)
            continue
        names += more
        unreadable |= failed
    files, aliases = _one_name_each(names, root, rules)
    listed = {**_one_file_each(files), **{f"{folder}/": _unlistable(folder) for folder in unreadable}}
    return Listing(identity, extras, listed, aliases, tuple(sorted(unreadable)))


def _unlistable(folder: str) -> FoundFile:
    problem = Problem(
        "UNREADABLE", "this folder can't be listed, so nothing in it is indexed: mend it or its permissions"
    )
    return FoundFile(f"{folder}/", Path(), folder, Signature(0, 0, 0, 0, 0), private=False, problem=problem)


def _walked(root: Path, rules: FolderRules, extra: Extra | None) -> tuple[tuple[int, int], list[_Name], set[str]]:
    """Walk through one folder: which it was, its files' names, its subfolders that could not be listed."""
    identity = identify_root(root)
    walk = _Walk(os.path.realpath(root), rules, extra)
    names = list(walk.names())
    check_identity(root, identity)
    return identity, names, walk.unreadable


class _Walk:
    """One walk through a folder, and the subfolders that it could not read."""

    def __init__(self, root: str, rules: FolderRules, extra: Extra | None) -> None:
        self._root = root
        self._reads = extra.reads if extra else rules.reads
        self._extra = extra
        self._prefix = f"{extra.name}/" if extra else ""
        self.unreadable: set[str] = set()

    def names(self) -> Iterator[_Name]:
        """Iterate over all names of files that belong to the workspace."""
        for folder, entry in self._entries():
            if self._reads(self._utf8(entry.path)):
                name = self._link(entry) if entry.is_symlink() else self._file(folder, entry)
                if name is not None:
                    yield name

    def _entries(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        pending = [self._root]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if is_hidden(entry.name):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        else:
                            yield folder, entry
            except OSError as error:
                self._failed(folder, error)

    def _file(self, folder: str, entry: os.DirEntry[str]) -> _Name | None:
        try:
            return self._name(entry, entry.path, entry.stat(follow_symlinks=False))
        except OSError as error:
            self._failed(folder, error)
            return None

    def _link(self, entry: os.DirEntry[str]) -> _Name | None:
        """Follow a link; None where it leads out of the workspace, to a folder, into a hidden one, or nowhere."""
        try:
            real = os.path.realpath(entry.path, strict=True)
            status = Path(real).lstat()
        except OSError:
            return None
        if os.path.commonpath((real, self._root)) != self._root or S_ISDIR(status.st_mode):
            return None
        return None if is_hidden(self._below(real)) else self._name(entry, real, status)

    def _name(self, entry: os.DirEntry[str], real: str, status: os.stat_result) -> _Name:
        problem = None if S_ISREG(status.st_mode) else Problem("UNREADABLE", "it is not a regular file")
        try:
            check_path(self._prefix + self._below(entry.path))
        except PathError as error:
            problem = Problem("UNREADABLE", f"{error}; rename the file")
        return _Name(self._key(entry.path), self._extra, self._below(real), entry.is_symlink(), status, problem)

    def _failed(self, folder: str, error: OSError) -> None:
        """A folder that can't be read, unless it or the file is gone meanwhile."""
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return  # the root itself is checked at the end
        if folder == self._root:
            raise RootMissingError(reason(error)) from error
        self.unreadable.add(self._key(folder))

    def _below(self, path: str) -> str:
        return path.removeprefix(self._root).lstrip("/")

    def _key(self, path: str) -> str:
        """Make a key's path."""
        return self._prefix + self._utf8(path)

    def _utf8(self, path: str) -> str:
        """Make a path below the root one that a key can have: bytes of a name that are no UTF-8 are replaced."""
        name = os.fsencode(self._below(path)).decode(errors="replace")
        return unicodedata.normalize("NFC", name)


def _one_name_each(names: list[_Name], root: Path, rules: FolderRules) -> tuple[list[FoundFile], frozenset[str]]:
    """Choose one name of each inode: its own before links, then the first."""
    by_inode: dict[tuple[int, int], list[_Name]] = {}
    for name in sorted(names, key=attrgetter("linked", "path", "name")):
        by_inode.setdefault((name.status.st_dev, name.status.st_ino), []).append(name)
    files = []
    aliases = set()
    for first, *others in by_inode.values():
        private = any(is_private(name.path, rules.private) for name in (first, *others))
        files.append(
            FoundFile(
                path=first.path,
                root=first.extra.root if first.extra else root,
                name=first.name,
                signature=Signature.of(first.status),
                private=private,
                problem=first.problem,
                evergreen=first.extra is None or first.extra.evergreen,
            )
        )
        aliases |= {other.path for other in others}
    return files, frozenset(aliases - {file.path for file in files})


def _one_file_each(files: list[FoundFile]) -> Mapping[str, FoundFile]:
    """Set aside a path that several files share: their names differ on disk, but not after NFC."""
    listed = {}
    for path, group in groupby(sorted(files, key=attrgetter("path", "name")), key=attrgetter("path")):
        first, *others = group
        if others:
            if len({file.root for file in (first, *others)}) > 1:
                detail = f"{path!a} is both in the workspace's folder and in a further one; rename one of them"
            else:
                names = ", ".join(ascii(file.name) for file in (first, *others))
                detail = f"{names} are the same name after NFC; rename all but one"
            private = any(file.private for file in (first, *others))
            listed[path] = replace(first, private=private, problem=Problem("NAME_CLASH", detail))
        else:
            listed[path] = first
    return listed
