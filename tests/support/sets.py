"""Retrieval sets that tests write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

Entry = Mapping[str, object]


def write_set(folder: Path, corpus: Sequence[Entry], queries: Sequence[Entry], qrels: str) -> Path:
    """Write a set's files."""
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in queries))
    (folder / "qrels.tsv").write_text(qrels)
    return folder


def write_odd_set(folder: Path) -> Path:
    """Write a small set with what no agent would write, in two groups."""
    corpus: list[Entry] = [
        {"id": "kiln", "group": "A", "title": "Kiln", "text": "The kiln was serviced by Ambrose."},
        {"id": "node_modules/loom", "group": "A", "text": "The loom was repaired by Petronella."},
        {"id": "empty", "group": "A", "text": ""},
        {"id": "broken", "group": "A", "text": "\0" * 500},
        {"id": "kiln", "group": "b b", "text": "The other kiln is out of order."},
    ]
    queries: list[Entry] = [
        {"id": "q1", "group": "A", "text": "who serviced the kiln?"},
        {"id": "q2", "group": "A", "text": "loom repair " * 3000},
        {"id": "q3", "group": "A", "text": "what is the capital of Peru?", "answerable": False},
        {"id": "q4", "group": "b b", "text": "is there a kiln that works?"},
    ]
    return write_set(folder, corpus, queries, "q1\tkiln\t1\nq2\tnode_modules/loom\t1\nq4\tkiln\t1\n")
