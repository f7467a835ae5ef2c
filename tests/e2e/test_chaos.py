"""A short run of `make chaos`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from memoryd.client import SearchReply, SearchResult
from tests.chaos.check import torn
from tests.chaos.run import chaos


@pytest.mark.timeout(600)
async def test_twenty_kills_lose_double_and_tear_nothing(folder: Path) -> None:
    outcome = await chaos(20, 7, folder, lambda _: None)
    assert outcome.is_clean, outcome
    assert (outcome.kills, outcome.restarts) == (20, 2)


LINES = [f"The harbour of line {number} is {'far ' * 40}away." for number in range(1, 9)]
TEXT = "\n".join(LINES)
HASH = hashlib.sha256(TEXT.encode()).hexdigest()


def reply(*shown: tuple[int, int, str], file_hash: str = HASH) -> SearchReply:
    """Make an answer of results: their lines, and the text that they show."""
    results = tuple(
        SearchResult(
            *("a.md", start, end, 0.5, None, None, None, text, "memory", f"a.md#L{start}-L{end}", file_hash, "", "r"),
            explanation=(),
        )
        for start, end, text in shown
    )
    return SearchReply(results, "text", "", None, False, True, False, 0, (), {}, "1")


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        pytest.param(reply((1, 2, "\n".join(LINES[:2])), (3, 3, LINES[2])), 0, id="whole"),
        pytest.param(reply((1, 8, "\n".join(LINES[2:5]))), 0, id="too-long-to-be-shown-whole"),
        pytest.param(reply((1, 2, LINES[0])), 1, id="less-than-could-be-shown"),
        pytest.param(reply((2, 2, LINES[0])), 1, id="another-line"),
        pytest.param(reply((1, 8, "\n".join([LINES[1], LINES[0]]))), 1, id="lines-that-do-not-follow"),
        pytest.param(reply((1, 8, LINES[0][5:])), 1, id="part-of-a-line"),
        pytest.param(reply((1, 1, LINES[0]), file_hash="0" * 64), 1, id="a-state-that-never-was"),
    ],
)
def test_a_result_that_its_file_does_not_hold_is_torn(answer: SearchReply, wrong: int) -> None:
    assert len(torn(answer, {HASH: TEXT})) == wrong
