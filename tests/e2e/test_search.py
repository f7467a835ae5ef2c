"""What an agent relies on when it searches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoryd.errors import InvalidInputError
from tests.e2e.deployment import Deployment
from tests.support.example_queries import EXAMPLE_QUERIES


async def test_the_example_queries_find_their_lines(example: Deployment) -> None:
    # The queries were written for wiring, not as a measure: the last one is known to be hard.
    hits = []
    for query in EXAMPLE_QUERIES:
        results = (await example.search(query.text, max_results=10, min_score=0.0)).results
        hits.append(
            any(
                result.path == query.path
                and result.start_line <= query.end_line
                and query.start_line <= result.end_line
                for result in results
            )
        )
    missed = [query.text for query, hit in zip(EXAMPLE_QUERIES, hits, strict=True) if not hit]
    assert len(missed) <= 2, missed


async def test_the_readme_query_comes_first(example: Deployment) -> None:
    reply = await example.search("what do we do if a cold room is warming up in the middle of the night?")
    first = reply.results[0]
    assert first.path == "memory/runbooks/cold-room-failure.md"
    assert first.start_line <= 11 <= first.end_line
    assert first.citation == f"{first.path}#L{first.start_line}-L{first.end_line}"
    assert reply.mode == "hybrid"
    assert not reply.degraded
    assert set(reply.timings) >= {"embed", "vector", "text", "fuse"}


async def test_a_snippet_is_text_of_the_cited_lines(example: Deployment) -> None:
    result = (await example.search("FROSTWATCH_PAGE_URL")).results[0]
    lines = await example.client.get(
        result.path, start=result.start_line, lines=result.end_line - result.start_line + 1
    )
    assert result.snippet in lines.text
    assert len(result.snippet) <= 700
    assert lines.file_hash == result.file_hash


async def test_the_parts_of_a_long_line_are_cited_once(running: Deployment, folder: Path) -> None:
    (folder / "log.md").write_text(" ".join(f"Ferry {number} leaves the harbour at dawn." for number in range(400)))
    for number in range(9):
        (folder / f"note-{number}.md").write_text(f"The harbour master wrote note {number}.\n")
    await running.synced()
    await running.settled()
    (status,) = (await running.client.status()).workspaces
    assert status.chunks > 20  # the log's line is many of them
    results = (await running.search("ferry harbour", max_results=10, min_score=0.0)).results
    assert len({result.citation for result in results}) == len(results) == 10


async def test_an_edit_is_found_and_a_deletion_is_gone(running: Deployment, folder: Path) -> None:
    note = folder / "memory" / "2026-05-01.md"
    note.parent.mkdir()
    note.write_text("# Friday\n\nThe kiln was serviced by Ambrose.\n")
    await running.until("who serviced the kiln", bool)
    note.write_text("# Friday\n\nThe loom was repaired by Petronella.\n")
    await running.until("loom repaired", lambda found: any("Petronella" in result.snippet for result in found))
    assert not any("Ambrose" in result.snippet for result in (await running.search("kiln", min_score=0.0)).results)
    note.unlink()
    await running.until("loom repaired", lambda found: not found, min_score=0.0)


async def test_case_rename(running: Deployment, folder: Path) -> None:
    """Case `rename`: an atomic replace and a rename are both seen, and leave no ghost."""
    memory = folder / "memory"
    memory.mkdir()
    (memory / "a.md").write_text("The first lighthouse keeper.\n")
    await running.until("lighthouse keeper", bool)
    (folder / "a.tmp").write_text("The second lighthouse keeper.\n")
    os.replace(folder / "a.tmp", memory / "a.md")  # noqa: PTH105  (the case is about this call)
    (memory / "a.md").rename(memory / "b.md")
    reply = await running.until("lighthouse keeper", lambda found: [r.path for r in found] == ["memory/b.md"])
    assert "second" in reply.results[0].snippet


async def test_a_shorter_answer_is_a_prefix(example: Deployment) -> None:
    """Case `prefix-stable`."""
    for query in ("generator fuel", "seed dormancy", "label", "昆明"):
        many = [(r.path, r.start_line) for r in (await example.search(query, max_results=50, min_score=0.0)).results]
        for k in (1, 2, 5, 20):
            few = (await example.search(query, max_results=k, min_score=0.0)).results
            assert [(r.path, r.start_line) for r in few] == many[:k]


async def test_scores_are_between_zero_and_one_and_fall(example: Deployment) -> None:
    for mode in ("hybrid", "vector", "text"):
        results = (await example.search("cold room alarm", mode=mode, max_results=50, min_score=0.0)).results
        scores = [result.score for result in results]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert all((result.vector_score is None) == (mode == "text") for result in results)
        assert all((result.text_score is None) == (mode == "vector") for result in results)


async def test_private_files_are_withheld_where_others_listen(example: Deployment) -> None:
    assert "USER.md" in await example.found("what is Ragna allergic to?")
    for chat in ("group", "channel"):
        paths = await example.found("what is Ragna allergic to?", chat=chat, max_results=50, min_score=0.0)
        assert not {"USER.md", "MEMORY.md"} & set(paths)
        assert (await example.client.get("USER.md", chat=chat)).status == "not_found"
    reply = await example.search("cold room", chat="group")
    assert not reply.citations
    assert all(result.citation == "" for result in reply.results)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"path_prefix": "memory/runbooks/"}, lambda path: path.startswith("memory/runbooks/")),
        ({"path_prefix": "memory/2026-0", "since": "2026-04-01"}, lambda path: path >= "memory/2026-04-01"),
        ({"path_prefix": "memory/2026-0", "until": "2026-03-31"}, lambda path: path <= "memory/2026-03-31.md"),
    ],
)
async def test_filters(example: Deployment, options: dict[str, str], allowed: object) -> None:
    assert callable(allowed)
    paths = await example.found("cold room seed label", max_results=50, min_score=0.0, **options)
    assert paths
    assert all(allowed(path) for path in paths)


async def test_explain_says_how_a_score_came_about(example: Deployment) -> None:
    (result, *_) = (await example.search("lotSuffix", explain=True)).results
    assert any(step.startswith("vector:") for step in result.explanation)
    assert any(step.startswith("text:") for step in result.explanation)
    assert f"{result.score:.3f}" in result.explanation[-1]


async def test_old_notes_decay_and_evergreen_files_do_not(running: Deployment, folder: Path) -> None:
    """Case `nested-date`."""
    text = "The pottery wheel needs a new belt.\n"
    names = ("dreaming/light/2020-05-14", "2020-05-14-standup", "2020-02-31", "wheel")
    for name in names:
        path = folder / "memory" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    await running.until("pottery wheel belt", lambda found: len(found) == len(names), min_score=0.0)
    reply = await running.search("potter's wheel drive repair", decay=30.0, min_score=0.0)
    scores = {result.path.removeprefix("memory/").removesuffix(".md"): result.score for result in reply.results}
    assert max(scores["dreaming/light/2020-05-14"], scores["2020-05-14-standup"]) < min(
        scores["2020-02-31"], scores["wheel"]
    )
    assert "decay" in reply.timings


async def test_rerank(example: Deployment) -> None:
    query = "why was nobody called when the south room got warm in February?"
    replies = {rerank: await example.search(query, min_score=0.0, rerank=rerank) for rerank in ("auto", "on", "off")}
    assert "rerank" in replies["auto"].timings
    assert not replies["auto"].degraded
    assert [each.reason for each in replies["on"].degraded] == ["NO_CROSS_ENCODER"]
    assert [r.snippet for r in replies["on"].results] == [r.snippet for r in replies["auto"].results]
    assert all(result.rerank_score is not None for result in replies["auto"].results)
    assert all(result.rerank_score is None for result in replies["off"].results)
    assert "rerank" not in replies["off"].timings


async def test_words_without_a_subject_find_nothing(example: Deployment) -> None:
    for query in ("of", "...", "the of"):
        for mode in ("hybrid", "vector", "text"):
            assert not (await example.search(query, mode=mode)).results, (query, mode)


async def test_freshness_waits_for_a_revision(running: Deployment, folder: Path) -> None:
    (folder / "a.md").write_text("The harbour master is Ingeborg.\n")
    reply = await running.until("harbour master", bool)
    revision = reply.results[0].revision
    again = await running.search("harbour master", freshness=("a.md", revision), freshness_wait=5.0)
    assert again.results[0].revision == revision
    with pytest.raises(InvalidInputError, match="revision"):
        await running.search("harbour master", freshness=("a.md", "not a revision"))
