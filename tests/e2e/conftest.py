"""Fixtures of the scenarios: a shape, folders, a deployment on the example workspace."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.domain.names import Scope
from tests.e2e.shapes import SHAPES, Deployment, Shape

EXAMPLE = Path(__file__).parents[2] / "examples" / "workspace"
ROD = Scope("acme", "rod")


@pytest.fixture(params=list(SHAPES))
def shape(request: pytest.FixtureRequest) -> Shape:
    """Each shape in turn."""
    return SHAPES[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty workspace folder."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
async def running(shape: Shape, tmp_path: Path, folder: Path) -> AsyncIterator[Deployment]:
    """A deployment on the empty folder."""
    async with shape(tmp_path / "data", {ROD: folder}) as deployment:
        yield deployment


@pytest.fixture
async def example(shape: Shape, tmp_path: Path, folder: Path) -> AsyncIterator[Deployment]:
    """A deployment that has indexed a copy of the example workspace."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    async with shape(tmp_path / "data", {ROD: folder}) as deployment:
        await deployment.settled()
        yield deployment
