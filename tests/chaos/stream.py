"""A stream of edits, as editors and agents make them, and every state that a file ever had."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

COMMON = "harbour"  # in every section, so that one search finds all of them
_WORDS = [
    "anchor",
    "basalt",
    "cedar",
    "damson",
    "ember",
    "fathom",
    "gantry",
    "heron",
    "indigo",
    "jetty",
    "kelp",
    "lantern",
    "mallow",
    "nutmeg",
    "oakum",
    "pilot",
    "quince",
    "rigging",
    "sorrel",
    "tiller",
    "umber",
    "vellum",
    "willow",
    "yarrow",
    "zephyr",
]
_MOST_FILES = 40


class Stream:
    """Changes files in a folder, each change a random one; the same for the same seed.

    Attributes:
        versions: every text that was ever written, by the SHA-256 of its bytes.
        changes: how many were made.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.versions: dict[str, str] = {}
        self.changes = 0
        self._folder = folder
        self._rng = random.Random(seed)  # noqa: S311  (repeatable, no secret)
        self._dropped: list[str] = []

    def change(self) -> None:
        """Make one change."""
        files = sorted(self._folder.glob("*.md"))
        kinds = [self._edit, self._edit, self._blank_line, self._append, self._rename, self._delete, self._burst]
        if len(files) < _MOST_FILES / 2:
            self._create()
        else:
            self._rng.choice([*kinds, self._create] if len(files) < _MOST_FILES else kinds)()
        self.changes += 1

    def _create(self) -> None:
        """Write a new file, or one again that was there before."""
        name = f"note-{self._rng.randrange(_MOST_FILES * 2)}.md"
        again = self._dropped and self._rng.random() < 0.5
        sections = [section(self._rng) for _ in range(self._rng.randint(1, 6))]
        self._write(name, self._dropped.pop() if again else "\n".join(sections))

    def _edit(self) -> None:
        """Change one line."""
        file = self._any()
        lines = file.read_text().split("\n")
        lines[self._rng.randrange(len(lines))] = sentence(self._rng)
        self._write(file.name, "\n".join(lines))

    def _blank_line(self) -> None:
        file = self._any()
        self._write(file.name, "\n" + file.read_text())

    def _append(self) -> None:
        file = self._any()
        text = file.read_text()
        self._write(file.name, f"{text}\n{section(self._rng)}" if len(text) < 5_000 else section(self._rng))

    def _rename(self) -> None:
        file = self._any()
        file.replace(file.with_name(f"moved-{self._rng.randrange(_MOST_FILES)}.md"))

    def _delete(self) -> None:
        file = self._any()
        self._dropped.append(file.read_text())
        file.unlink()

    def _burst(self) -> None:
        """Create, write, delete and write again at once."""
        name = self._any().name
        self._write(name, section(self._rng))
        (self._folder / name).unlink()
        self._write(name, f"{section(self._rng)}\n{section(self._rng)}")

    def _any(self) -> Path:
        return self._rng.choice(sorted(self._folder.glob("*.md")))

    def _write(self, name: str, text: str) -> None:
        content = text.encode()
        self.versions[hashlib.sha256(content).hexdigest()] = text
        new = self._folder / f"{name}.new"
        new.write_bytes(content)
        new.replace(self._folder / name)


def section(rng: random.Random) -> str:
    """Make a section of one to four sentences."""
    heading = f"## {rng.choice(_WORDS)} {rng.randrange(1_000)}"
    return "\n".join([heading, "", *(sentence(rng) for _ in range(rng.randint(1, 4))), ""])


def sentence(rng: random.Random) -> str:
    """Make a sentence that holds the common word."""
    return f"The {COMMON} of {' '.join(rng.choices(_WORDS, k=8))} {rng.randrange(10**6)}."
