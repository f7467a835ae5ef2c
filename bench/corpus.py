"""Text to index: as many different chunks as asked, from the words of the example workspace."""

from __future__ import annotations

import random
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "workspace"
# About a chunk's worth: the chunker aims at 200 tokens, and a word of these notes has two or three.
_WORDS_A_SECTION = 50
_SECTIONS_A_FILE = 20


def write_corpus(folder: Path, sections: int, seed: int = 7) -> None:
    """Write `sections` sections of shuffled sentences, 20 a file; the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311  (repeatable text, no secret)
    sentences = [
        line.strip()
        for path in sorted(EXAMPLE.rglob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if len(line.split()) > 5  # noqa: PLR2004  (a sentence)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, sections, _SECTIONS_A_FILE):
        parts = [_section(rng, sentences, number) for number in range(first, min(first + _SECTIONS_A_FILE, sections))]
        (folder / f"notes-{first // _SECTIONS_A_FILE:05}.md").write_text("\n".join(parts), encoding="utf-8")


def _section(rng: random.Random, sentences: list[str], number: int) -> str:
    lines = [f"## Entry {number} of {rng.choice(sentences).split()[0]}", ""]
    words = 0
    while words < _WORDS_A_SECTION:
        # A number in each line keeps every chunk's text different from all others.
        line = f"- {rng.choice(sentences)} ({rng.randrange(10**6)})"
        lines.append(line)
        words += len(line.split())
    return "\n".join([*lines, ""])
