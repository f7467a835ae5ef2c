from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryd.domain.paths import check_path, is_hidden
from memoryd.errors import InvalidInputError
from memoryd.evaluation.sets import load, workspace_name


def write(folder: Path, corpus: list[dict[str, object]], queries: list[dict[str, object]], qrels: str) -> Path:
    (folder / "corpus.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in queries))
    (folder / "qrels.tsv").write_text(qrels)
    return folder


def test_documents_become_files_with_their_title_as_first_heading(tmp_path: Path) -> None:
    corpus: list[dict[str, object]] = [
        {"id": "https://example.com/a#b?c", "title": "Get started", "text": "Get started\n\nbody"},
        {"id": "notes/今天.md", "title": "Today", "text": "body\n"},
        {"id": "../x", "title": "", "text": "x"},
        {"id": "a?", "text": "1"},
        {"id": "a!", "text": "2"},
    ]
    data = load(write(tmp_path, corpus, [{"id": "q", "text": "?"}], "q\tnotes/今天.md\t1\n"))
    assert [document.text for document in data.documents] == [
        "Get started\n\nbody",
        "# Today\n\nbody\n",
        "x",
        "1",
        "2",
    ]
    assert [document.shift for document in data.documents] == [0, 2, 0, 0, 0]
    paths = [document.path for document in data.documents]
    assert paths[1] == "notes/今天.md"
    assert len(set(paths)) == len(paths)
    assert [check_path(path) for path in paths] == paths
    assert data.relevant == {"q": frozenset({"notes/今天.md"})}
    assert data.groups == [workspace_name(tmp_path.name)]


def test_any_id_becomes_a_path_that_is_read(tmp_path: Path) -> None:
    ids = [
        "node_modules/x",
        ".git/y",
        "venv",
        "长" * 300,
        "e\u0301te\u0301",
        "...",
        "a//b",
        "CON:1|2",
        "x" * 400 + "/y.md",
    ]
    corpus: list[dict[str, object]] = [{"id": name, "text": name} for name in ids]
    data = load(write(tmp_path, corpus, [{"id": "q", "text": "?"}], "q\tvenv\t1\n"))
    paths = [document.path for document in data.documents]
    assert [check_path(path) for path in paths] == paths
    assert not any(is_hidden(path) for path in paths)
    assert all(len(part.encode()) <= 255 for path in paths for part in path.split("/"))
    assert len(set(paths)) == len(ids)


def test_groups_spans_and_unanswerable_queries(tmp_path: Path) -> None:
    corpus: list[dict[str, object]] = [
        {"id": "a/1", "group": "A b", "text": "x"},
        {"id": "c/1", "group": "c", "text": "y"},
    ]
    queries: list[dict[str, object]] = [
        {"id": "q1", "group": "A b", "text": "x?"},
        {"id": "q2", "group": "c", "text": "z?", "answerable": False},
    ]
    folder = write(tmp_path, corpus, queries, "query-id\tcorpus-id\tscore\nq1\ta/1\t1\nq1\tc/1\t0\n")
    (folder / "spans.tsv").write_text("q1\ta/1\t1\t1\n")
    data = load(folder)
    assert data.groups == ["a-b", "c"]
    assert [(query.group, query.answerable) for query in data.queries] == [("a-b", True), ("c", False)]
    assert data.relevant == {"q1": frozenset({"a/1"})}
    assert data.spans == {"q1": (("a/1", 1, 1),)}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", '{"id": "a", "text": "x"}\n{oops\n', r"corpus\.jsonl, line 2"),
        ("corpus.jsonl", '{"id": 1, "text": "x"}\n', "id must be text"),
        ("queries.jsonl", '["q"]\n', r"queries\.jsonl, line 1"),
        ("qrels.tsv", "q\ta\t1\nq a 1\n", r"qrels\.tsv, line 2"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, file: str, content: str, message: str) -> None:
    folder = write(tmp_path, [{"id": "a", "text": "x"}], [{"id": "q", "text": "x"}], "q\ta\t1\n")
    (folder / file).write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        load(folder)


def test_a_folder_that_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"has no corpus\.jsonl"):
        load(tmp_path)
