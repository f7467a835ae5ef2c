"""The file logs under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.ports import FileLog
from tests.contract.registry import FILE_LOGS, Opened, opened


@pytest.fixture
def lease() -> float:
    return 60.0


@pytest.fixture(params=sorted(FILE_LOGS))
async def held(request: pytest.FixtureRequest, tmp_path: Path, lease: float) -> AsyncIterator[Opened[FileLog]]:
    async with opened(lambda place: FILE_LOGS[request.param](place, lease), tmp_path) as adapter:
        yield adapter


@pytest.fixture
def log(held: Opened[FileLog]) -> FileLog:
    return held.now
