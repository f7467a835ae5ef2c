"""What every way to the indexer does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memoryd.domain.files import Problem
from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError
from memoryd.ports import Indexing, IndexStatus, QuarantinedFile
from tests.contract.registry import INDEXINGS
from tests.support.gateway import SCOPE
from tests.support.inner import FakeIndexer

SET_ASIDE = (
    QuarantinedFile("big.md", Problem("TOO_LARGE", "12 MiB")),
    QuarantinedFile("日記/x.md", Problem("BINARY", "")),
)


@pytest.fixture
def behind() -> FakeIndexer:
    return FakeIndexer()


@pytest.fixture(params=sorted(INDEXINGS))
async def indexing(request: pytest.FixtureRequest, behind: FakeIndexer) -> AsyncIterator[Indexing]:
    async with INDEXINGS[request.param](behind) as reached:
        yield reached


async def test_the_status_arrives_whole(indexing: Indexing, behind: FakeIndexer) -> None:
    full = IndexStatus(SCOPE, files=3, chunks=2**40, pending=1, quarantined=SET_ASIDE, revision="1f")
    behind.statuses[SCOPE] = full
    assert await indexing.status(SCOPE) == full


async def test_the_status_is_that_of_the_scope(indexing: Indexing, behind: FakeIndexer) -> None:
    behind.statuses[Scope("rival", SCOPE.workspace)] = IndexStatus(SCOPE, 9, 9, 9, SET_ASIDE, "9")
    assert await indexing.status(SCOPE) == IndexStatus(SCOPE, 0, 0, 0, (), "0")


async def test_bytes_on_disk(indexing: Indexing) -> None:
    assert await indexing.disk_bytes() == 4096


async def test_an_error_arrives_as_it_was_raised(indexing: Indexing, behind: FakeIndexer) -> None:
    behind.error = UnavailableError("NATS does not answer")
    with pytest.raises(UnavailableError, match=r"^NATS does not answer$"):
        await indexing.status(SCOPE)
