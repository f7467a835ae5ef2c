"""A short history of commits, replayed: `python -m tests.chaos --commits 300` replays a long one."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.history import replay


async def test_after_each_commit_both_stores_hold_the_tree(tmp_path: Path) -> None:
    counts = await replay(40, 20, 3, tmp_path, lambda _: None)
    assert not counts.total, counts
