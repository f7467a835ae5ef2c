"""The field cases of chunking, reuse, watcher and index through the whole product, by id.

What they ask of single steps (`transient`, `two-writers`, `crash-mid`, counters of `blank-line` and `rename`) is in
`test_indexing.py`, on the engines of both shapes; here it is what a caller sees.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import SearchResult
from tests.e2e.deployment import Deployment
from tests.e2e.test_cases import write

EVERYTHING: dict[str, Any] = {"mode": "vector", "min_score": 0.0, "max_results": 50, "path_prefix": "memory/a.md"}
FAMILY = "👩🏽‍👩🏽‍👧🏽‍👦🏽"
TEXTS = {
    "chunk-cap": "# Log\n\nfirst\n\n" + "word " * 600 + "\n\nlast\n",
    "fence-heading": "# A\n```bash\n# install deps\npip install x\n```\n",
    "fence-nested": "````md\n```\ncode\n```\n````\nafter\n",
    "setext": "Title\n=====\nbody\n",
    "fullwidth": "：" * 4000 + "\n",
    "emoji-edge": f"{'x' * 690}{FAMILY}{'y' * 2000}\n",
}


@pytest.mark.parametrize("case", list(TEXTS))
async def test_chunking(running: Deployment, folder: Path, case: str) -> None:
    """A strange file is indexed as a whole, and keeps no other one out."""
    text = TEXTS[case]
    write(folder, {"memory/a.md": text, "memory/b.md": "The ferry Halcyon leaves at noon.\n"})
    await running.client.sync()
    (status,) = (await running.client.status()).workspaces
    assert (status.files, status.quarantined) == (2, ())
    assert (await running.found("ferry Halcyon"))[:1] == ["memory/b.md"]
    results = (await running.search("anything", **EVERYTHING)).results
    assert results
    lines = text.split("\n")
    for result in results:
        whole = "\n".join(lines[result.start_line - 1 : result.end_line])
        assert all(part in whole for part in result.snippet.split("\n"))
        assert len(result.snippet) <= 700
        assert result.snippet.encode().decode() == result.snippet
    covered = {line for result in results for line in range(result.start_line, result.end_line + 1)}
    assert covered >= {number for number, line in enumerate(lines, 1) if line.strip()}
    assert {result.heading for result in results} == HEADINGS.get(case, {""})
    chunks = status.chunks - 1  # without the other file's
    if case in {"chunk-cap", "fullwidth", "emoji-edge"}:
        assert chunks > 1  # a line beyond the cap is cut
    else:
        assert chunks == 1  # a fence stays whole
    assert len(results) == len({(result.start_line, result.end_line) for result in results})  # its parts are one result


HEADINGS = {"chunk-cap": {"Log"}, "fence-heading": {"A"}, "setext": {"Title"}}


@pytest.mark.parametrize("case", [pytest.param("blank-line", id="blank-line")])
async def test_a_blank_line_at_the_top_moves_lines_alone(running: Deployment, folder: Path, case: str) -> None:
    text = "\n".join(f"## Section {n}\n\nOn day {n} the ferry Halcyon left at {n}:15.\n" for n in range(60))
    write(folder, {"memory/a.md": text})
    await running.client.sync()
    before = (await running.search("ferry Halcyon", **EVERYTHING)).results
    write(folder, {"memory/a.md": "\n" + text})
    assert (await running.client.sync()).changed == 1
    after = (await running.search("ferry Halcyon", **EVERYTHING)).results
    assert [moved(result, 1) for result in before] == [moved(result, 0) for result in after]


def moved(result: SearchResult, lines: int) -> tuple[object, ...]:
    return result.snippet, result.start_line + lines, result.end_line + lines, result.score


@pytest.mark.parametrize("case", [pytest.param("rename", id="rename")])
async def test_an_atomic_save_and_a_rename_leave_no_ghost(running: Deployment, folder: Path, case: str) -> None:
    write(folder, {"memory/.a.tmp": "The ferry Halcyon leaves at noon.\n"})
    os.replace(folder / "memory/.a.tmp", folder / "memory/a.md")  # noqa: PTH105  (as the case says)
    await running.until("ferry Halcyon", lambda found: [r.path for r in found] == ["memory/a.md"])
    (folder / "memory/a.md").rename(folder / "memory/b.md")
    await running.until("ferry Halcyon", lambda found: [r.path for r in found] == ["memory/b.md"])
    assert (await running.client.get("memory/a.md")).status == "not_found"


@pytest.mark.parametrize("case", [pytest.param("late-folder", id="late-folder")])
async def test_a_folder_that_comes_later_is_watched(running: Deployment, folder: Path, case: str) -> None:
    (folder / "memory").mkdir()
    write(folder, {"memory/deep/a.md": "The ferry Halcyon leaves at noon.\n"})
    await running.until("ferry Halcyon", lambda found: [r.path for r in found] == ["memory/deep/a.md"])


@pytest.mark.parametrize("case", [pytest.param("ghost", id="ghost")])
async def test_a_deleted_file_is_no_hit_or_the_answer_is_stale(running: Deployment, folder: Path, case: str) -> None:
    write(folder, {"memory/a.md": "The ferry Halcyon leaves at noon.\n"})
    await running.until("ferry Halcyon", bool)
    (folder / "memory/a.md").unlink()
    await running.synced()  # so that the deletion is known
    while (reply := await running.search("ferry Halcyon")).results:
        assert reply.stale
    await running.settled()
    assert await running.found("ferry Halcyon", mode="text") == []


@pytest.mark.parametrize("case", [pytest.param("transient", id="transient")])
async def test_nothing_is_called_clean_while_a_file_is_missing(running: Deployment, folder: Path, case: str) -> None:
    """As the case has it: ten files; that it holds while the embedder fails is in `test_indexing.py`."""
    write(folder, {f"memory/{n}.md": f"On day {n} the ferry Halcyon-{n} left at {n}:15.\n" for n in range(10)})
    await running.synced()
    while True:
        (status,) = (await running.client.status()).workspaces
        assert status.files == 10 or status.pending
        if not status.pending:
            break
    for n in range(10):
        assert (await running.found(f"Halcyon-{n}"))[:1] == [f"memory/{n}.md"]
