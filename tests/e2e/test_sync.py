"""The ways by which a change becomes searchable, and what an answer says until then. The interval has its own tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.client import QuarantinedFile
from memoryd.domain.files import Revision
from tests.e2e.conftest import ROD
from tests.e2e.deployment import Deployment, Shape
from tests.e2e.test_cases import write
from tests.e2e.test_sources import message

QUERY = "When does the ferry Halcyon leave?"
NOON, ONE = "The ferry Halcyon leaves at noon.\n", "The ferry Halcyon leaves at one.\n"


@pytest.fixture
async def running(shape: Shape, tmp_path: Path, folder: Path) -> AsyncIterator[Deployment]:
    """A deployment with sessions, that has indexed one note and one transcript."""
    write(folder, {"ferry.md": NOON, "sessions/s.jsonl": message("user", "Hello there, this is about a boat.")})
    async with shape(tmp_path / "data", {ROD: {"path": folder, "sessions": True}}) as deployment:
        await deployment.settled()
        yield deployment


def later(revision: str) -> str:
    """Name the revision that the next state has at least."""
    known = Revision.parse(revision)
    return Revision(known.epoch, known.sequence + 1).token


async def test_at_the_start_of_a_session_and_after_a_compaction_everything_is_taken(
    running: Deployment, folder: Path
) -> None:
    write(folder, {"ferry.md": ONE, "bus.md": "The bus Calypso leaves at two.\n"})
    with (folder / "sessions/s.jsonl").open("a") as transcript:  # far less than a delta
        transcript.write(message("assistant", "The tram Nausicaa leaves at three."))
    reply = await running.client.sync()
    assert reply.pending == 0
    assert "one" in (await running.search(QUERY)).results[0].snippet
    assert (await running.found("bus Calypso"))[:1] == ["bus.md"]
    (tram,) = (await running.search("tram Nausicaa", source="sessions")).results
    assert (tram.path, tram.end_line) == ("sessions/s.jsonl", 2)
    (folder / "bus.md").unlink()
    assert (await running.client.sync()).pending == 0
    assert await running.found("bus Calypso", mode="text") == []
    assert (await running.client.sync()).changed == 0


async def test_a_transcript_is_taken_by_its_growth(running: Deployment, folder: Path) -> None:
    with (folder / "sessions/s.jsonl").open("a") as transcript:
        transcript.writelines(message("user", f"The tram Nausicaa {n} leaves at {n}.") for n in range(50))
    await running.until("tram Nausicaa 49", bool, source="sessions")


async def test_a_search_waits_for_a_revision(running: Deployment, folder: Path) -> None:
    (before,) = (await running.search(QUERY, source="memory")).results
    write(folder, {"ferry.md": ONE})
    reply = await running.search(QUERY, freshness=("ferry.md", later(before.revision)), freshness_wait=20)
    assert "one" in reply.results[0].snippet
    assert not reply.stale
    # What does not come in time is answered all the same, and flagged.
    late = later(reply.results[0].revision)
    reply = await running.search(QUERY, freshness=("ferry.md", late), freshness_wait=0.05)
    assert (bool(reply.results), reply.stale, reply.set_aside) == (True, True, None)


@pytest.mark.parametrize(
    ("data", "reason"), [(b"\0\1\2\3", "BINARY"), (b"x" * (10 * 2**20 + 1), "TOO_LARGE")], ids=["binary", "large"]
)
async def test_a_wait_for_a_file_that_is_set_aside_ends_at_once(
    running: Deployment, folder: Path, data: bytes, reason: str
) -> None:
    (before,) = (await running.search(QUERY, source="memory")).results
    (folder / "ferry.md").write_bytes(data)
    wanted = ("ferry.md", later(before.revision))
    reply = await running.search(QUERY, source="memory", freshness=wanted, freshness_wait=30)
    assert isinstance(reply.set_aside, QuarantinedFile)
    assert (reply.set_aside.path, reply.set_aside.reason, reply.stale) == ("ferry.md", reason, True)
    assert [(result.path, result.stale) for result in reply.results] == [("ferry.md", True)]
    (status,) = (await running.client.status()).workspaces
    assert [(file.path, file.reason) for file in status.quarantined] == [("ferry.md", reason)]
    assert (status.files, status.pending) == (1, 0)
    # It is tried again when it changes.
    write(folder, {"ferry.md": ONE})
    await running.client.sync()
    reply = await running.search(QUERY, source="memory", freshness=wanted)
    assert (reply.set_aside, reply.stale, reply.results[0].stale) == (None, False, False)
    assert (await running.client.status()).workspaces[0].quarantined == ()
