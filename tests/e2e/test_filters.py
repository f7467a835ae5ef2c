"""Front matter and paths as filters of a search: applied in the index, so a filter finds what is far down the list."""

from __future__ import annotations

from pathlib import Path

from memoryd.domain.queries import MAX_RESULTS
from tests.e2e.deployment import Deployment
from tests.e2e.test_cases import write

WANTED = "memory/projects/ferry/2026-03-02.md"


async def test_tags_and_globs_reach_what_no_cut_would_have_left(running: Deployment, folder: Path) -> None:
    files = {f"notes/{n}.md": f"The ferry Halcyon leaves at noon, day {n}.\n" for n in range(MAX_RESULTS + 30)}
    files[WANTED] = "---\ntags: [Harbour, plan]\n---\n# Tides\n\nHigh water is at nine.\n"
    files["memory/projects/bus.md"] = "---\ntags: plan\n---\nThe bus Calypso leaves at one.\n"
    write(folder, files)
    await running.until("high water", lambda found: [r.path for r in found] == [WANTED], glob="**/2026-*.md")
    await running.settled()

    async def found(**options: object) -> list[str]:
        query = "The ferry Halcyon leaves at noon"
        return sorted(await running.found(query, min_score=0.0, mode="vector", max_results=MAX_RESULTS, **options))

    assert WANTED not in await found()
    assert await found(tags=["harbour"]) == await found(glob="memory/*/ferry/*") == [WANTED]
    assert await found(tags=["#PLAN"]) == await found(glob="memory/**") == ["memory/projects/bus.md", WANTED]
    assert await found(tags=["plan", "harbour"]) == await found(tags=["plan"], glob="**/ferry/**") == [WANTED]
    assert await found(tags=["Tides"]) == await found(glob="*.md") == []
    assert len(await found(glob="notes/?.md")) == 10
    # What is a filter is no text, and is none in the text leg either.
    assert await running.found("harbour plan", mode="text") == []
    assert await running.found("ferry", mode="text", tags=["harbour"], min_score=0.0) == [WANTED]  # by its path


async def test_front_matter_makes_a_file_private_and_dates_it(running: Deployment, folder: Path) -> None:
    write(
        folder,
        {
            "private.md": "---\nprivate: true\ndate: 2026-03-01\n---\nThe ferry Halcyon is for sale.\n",
            "open.md": "---\ndate: 2026-04-01\n---\nThe ferry Halcyon leaves at noon.\n",
            "broken.md": "---\ntags: [plan\nprivate: true\n---\nThe ferry Halcyon has a broken rudder.\n",
        },
    )
    await running.until("ferry Halcyon", lambda found: len(found) == 3)
    assert await running.found("ferry Halcyon", chat="group") == ["open.md"]
    assert (await running.client.get("private.md", chat="group")).status == "not_found"
    assert await running.found("ferry Halcyon", until="2026-03-31", since="2026-01-01") == ["private.md"]
    # Invalid YAML is text, and a warning.
    (status,) = (await running.client.status()).workspaces
    assert [file.path for file in status.warnings] == ["broken.md"]
    assert "not valid YAML" in status.warnings[0].warning
    assert (await running.found("tags plan private", mode="text"))[:1] == ["broken.md"]
