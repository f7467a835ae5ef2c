"""What every way to the indexer does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memoryd.domain.files import FileKey, Problem
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgedFile, PurgeOrder, PurgeReceipt
from memoryd.domain.repairs import Checkup, Defect, Finding, Treatment
from memoryd.errors import UnavailableError
from memoryd.ports import FileWarning, IndexFailure, IndexStatus, Maintenance, PartProbe, QuarantinedFile
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
async def indexing(request: pytest.FixtureRequest, behind: FakeIndexer) -> AsyncIterator[Maintenance]:
    async with INDEXINGS[request.param](behind) as reached:
        yield reached


async def test_the_status_arrives_whole(indexing: Maintenance, behind: FakeIndexer) -> None:
    failure = IndexFailure("write", "DISK_FULL", "no room on the disk of /data", at=1.7e9, ongoing=True)
    full = IndexStatus(
        *(SCOPE, 3, 2**40, 1, SET_ASIDE, "1f"),
        lag=12.5,
        checked=1.7e9,
        failure=failure,
        warnings=(FileWarning("日記/y.md", "front matter"),),
    )
    behind.statuses[SCOPE] = full
    assert await indexing.status(SCOPE) == full


async def test_the_status_is_that_of_the_scope(indexing: Maintenance, behind: FakeIndexer) -> None:
    behind.statuses[Scope("rival", SCOPE.workspace)] = IndexStatus(SCOPE, 9, 9, 9, SET_ASIDE, "9")
    assert await indexing.status(SCOPE) == IndexStatus(SCOPE, 0, 0, 0, (), "0")


async def test_a_sync_has_no_more_time_than_its_caller(indexing: Maintenance, behind: FakeIndexer) -> None:
    assert await indexing.sync(SCOPE, 5.0) == (3, 1)
    ((scope, timeout),) = behind.synced
    assert scope == SCOPE
    assert 0 < timeout <= 5.0


async def test_bytes_on_disk(indexing: Maintenance) -> None:
    assert await indexing.disk_bytes() == 4096


async def test_how_the_parts_answer_arrives_whole(indexing: Maintenance, behind: FakeIndexer) -> None:
    behind.probes = [PartProbe("file log", 0.25), PartProbe("embedder", 9e3, "UNAVAILABLE", "10.0.0.7 does not answer")]
    assert list(await indexing.probe(SCOPE, 5.0)) == behind.probes


async def test_an_error_arrives_as_it_was_raised(indexing: Maintenance, behind: FakeIndexer) -> None:
    behind.error = UnavailableError("NATS does not answer")
    with pytest.raises(UnavailableError, match=r"^NATS does not answer$"):
        await indexing.status(SCOPE)


async def test_a_comparison_arrives_whole(indexing: Maintenance, behind: FakeIndexer) -> None:
    findings = tuple(
        Finding(f"{defect}.md", defect, 2**40, 1, treatment, "why") for defect in Defect for treatment in Treatment
    )
    behind.checkups[SCOPE] = Checkup(SCOPE, files=3, chunks=4, pending=5, stray=6, findings=findings)
    assert await indexing.check(SCOPE, mend=True, timeout=5.0) == behind.checkups[SCOPE]
    await indexing.check(SCOPE, mend=False, timeout=5.0)
    assert behind.asked == [(SCOPE, True), (SCOPE, False)]


async def test_the_workspaces_arrive(indexing: Maintenance, behind: FakeIndexer) -> None:
    for scope in (SCOPE, Scope("rival", "main")):
        behind.statuses[scope] = IndexStatus(scope, 0, 0, 0, (), "0")
    assert list(await indexing.workspaces()) == sorted(behind.statuses)


@pytest.mark.parametrize(
    "order",
    [
        PurgeOrder(SCOPE.tenant, SCOPE.workspace, "日記/x.md", block=True),
        PurgeOrder(SCOPE.tenant, SCOPE.workspace),
        PurgeOrder(SCOPE.tenant),
    ],
)
async def test_an_order_and_its_receipt_arrive_whole(
    indexing: Maintenance, behind: FakeIndexer, order: PurgeOrder
) -> None:
    files = (PurgedFile(SCOPE, "a.md", 2, 3), PurgedFile(Scope(SCOPE.tenant, "other"), "日記/x.md"))
    behind.receipt = PurgeReceipt(files, verified=False, again_in=1.5, waits_for="a store", keys=7)
    assert await indexing.purge(order, timeout=5.0) == behind.receipt
    assert behind.asked == [order]


async def test_unblocking(indexing: Maintenance, behind: FakeIndexer) -> None:
    key = FileKey(SCOPE, "a.md")
    assert await indexing.unblock(key, timeout=5.0)
    assert behind.asked == [key]
