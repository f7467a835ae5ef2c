"""A short run of `make chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import chaos


@pytest.mark.timeout(600)
async def test_twenty_kills_lose_double_and_tear_nothing(folder: Path) -> None:
    outcome = await chaos(20, 7, folder, lambda _: None)
    assert outcome.is_clean, outcome
    assert (outcome.kills, outcome.restarts) == (20, 2)
