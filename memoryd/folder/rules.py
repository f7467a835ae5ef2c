"""What of a folder is read."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.domain.globs import matches_glob
from memoryd.domain.paths import DEFAULT_PRIVATE, is_hidden, is_markdown


@dataclass(frozen=True, slots=True)
class FolderRules:
    """The settings of reading a folder; whoever indexes it and whoever reads from it use the same.

    Attributes:
        max_bytes: a larger file is set aside.
        private: globs of files that are withheld in chats that are not direct.
        include: globs of files that are read.
        exclude: globs of files that are not read though included.
    """

    max_bytes: int = 10 * 2**20
    private: tuple[str, ...] = DEFAULT_PRIVATE
    include: tuple[str, ...] = ("**/*.md",)
    exclude: tuple[str, ...] = ()

    def reads(self, path: str) -> bool:
        """Whether the file of this name belongs to the workspace, if it is there."""
        return (
            is_markdown(path)
            and not is_hidden(path)
            and any(matches_glob(path, glob) for glob in self.include)
            and not any(matches_glob(path, glob) for glob in self.exclude)
        )
