"""Fixtures of the scenarios: a shape, folders, a deployment on the example workspace."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.domain.names import Scope
from tests.e2e.deployment import Deployment, Shape
from tests.e2e.shapes import SHAPES

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


@pytest.fixture(scope="session")
def example_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example workspace, and room for data beside it: no test changes it, so it is indexed once."""
    place = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, place / "workspace")
    return place


@pytest.fixture
async def example(shape: Shape, example_place: Path) -> AsyncIterator[Deployment]:
    """A deployment that has indexed the example workspace."""
    async with shape(example_place / "data", {ROD: example_place / "workspace"}) as deployment:
        await deployment.settled()
        yield deployment
