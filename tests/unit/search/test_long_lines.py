"""Lines that were cut into many chunks: each is one result."""

from __future__ import annotations

import pytest

from memoryd.domain.queries import Mode
from tests.support.searching import World


@pytest.mark.parametrize("mode", Mode)
async def test_the_parts_of_a_long_line_are_one_result_and_take_nobody_s_place(world: World, mode: Mode) -> None:
    await world.put("log.md", *(f"ferry harbour ferry harbour {number}" for number in range(500)), one_line=True)
    for number in range(10):
        await world.put(f"new-{number}.md", f"the harbour {number}")
    results = (await world.search(max_results=50, mode=mode)).results
    lines = [(result.path, result.start_line, result.end_line) for result in results]
    assert lines[0] == ("log.md", 1, 1)
    assert len(set(lines)) == len(lines)
    assert {path for path, _, _ in lines} == {"log.md", "a.md", "b.md", *(f"new-{number}.md" for number in range(10))}
    assert (await world.search(max_results=10, mode=mode)).results == results[:10]


async def test_of_equal_lines_the_best_score_is_kept(world: World) -> None:
    parts = ["the ferry", "the ferry harbour", "a bus to the harbour"]
    await world.put("log.md", *parts, one_line=True)
    (one,) = [
        result for result in (await world.search(max_results=50, mode=Mode.TEXT)).results if result.path == "log.md"
    ]
    assert one.snippet == "the ferry harbour"
