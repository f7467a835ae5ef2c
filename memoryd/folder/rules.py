"""What of a workspace's folders is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memoryd.domain.globs import matches_glob
from memoryd.domain.paths import DEFAULT_PRIVATE, SESSIONS, is_hidden, is_markdown, is_transcript


@dataclass(frozen=True, slots=True)
class Extra:
    """A further folder of a workspace. Its files have paths that begin with its name.

    Attributes:
        name: the first segment of its files' paths, and so the label to filter by.
        root: the folder.
        glob: which files of it are read, by their paths below it.
        evergreen: False: its files decay, by the date of their front matter, else by their modification time.
        transcripts: it holds the transcripts, which else lie in the workspace's folder `sessions`.
    """

    name: str
    root: Path
    glob: str = "**/*.md"
    evergreen: bool = True
    transcripts: bool = False

    def reads(self, below: str) -> bool:
        """Whether the file of this path below the folder belongs to the workspace, if it is there."""
        right_type = is_transcript(f"{SESSIONS}/{below}") if self.transcripts else is_markdown(below)
        return right_type and not is_hidden(below) and (self.transcripts or matches_glob(below, self.glob))

    def below(self, path: str) -> str | None:
        """The part of a path below this folder; None where it is no path of this folder."""
        prefix = f"{self.name}/"
        return path.removeprefix(prefix) if path.startswith(prefix) else None


@dataclass(frozen=True, slots=True)
class FolderRules:
    """The settings of reading a workspace; whoever indexes it and whoever reads from it use the same.

    Attributes:
        max_bytes: a larger file is set aside; of a transcript its text counts.
        private: globs of files that are withheld in chats that are not direct.
        include: globs of files that are read.
        exclude: globs of files that are not read though included.
        sessions: whether transcripts in the folder `sessions` are read.
        max_transcript_bytes: a transcript that is larger on disk is set aside.
        extras: further folders.
    """

    max_bytes: int = 10 * 2**20
    private: tuple[str, ...] = DEFAULT_PRIVATE
    include: tuple[str, ...] = ("**/*.md",)
    exclude: tuple[str, ...] = ()
    sessions: bool = False
    max_transcript_bytes: int = 64 * 2**20
    extras: tuple[Extra, ...] = ()

    def reads(self, path: str) -> bool:
        """Whether the file of this path below the workspace's own folder belongs to it, if it is there."""
        if is_hidden(path) or any(matches_glob(path, glob) for glob in self.exclude):
            return False
        if is_transcript(path):
            return self.sessions
        return is_markdown(path) and any(matches_glob(path, glob) for glob in self.include)
