"""Purging: what is erased and when, what is left alone, and when the receipt is verified."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from memoryd.domain.chunks import Chunk
from memoryd.domain.files import FileKey, LoggedFile, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.purges import PurgedFile, PurgeOrder, PurgeReceipt
from memoryd.errors import NotFoundError, PreconditionFailedError
from memoryd.ports import EmbeddedChunk, FolderState
from memoryd.ports.workspace import UNREACHABLE
from services.indexer.service import Indexer
from tests.support.fakes import vector_of
from tests.support.indexing import SCOPE, Engines, World, ids, section

PATH = "memory/secret.md"
OTHER = "memory/other.md"
FILE = PurgeOrder(SCOPE.tenant, SCOPE.workspace, PATH)
ALL = PurgeOrder(SCOPE.tenant, SCOPE.workspace)


@dataclass
class Owner:
    """A folder's owner, as far as a purge asks it."""

    served: bool = True
    synced: list[Scope] = field(default_factory=list)

    async def sync(self, scope: Scope, timeout: float) -> int:
        self.synced.append(scope)
        return 0

    async def state(self, scope: Scope) -> FolderState:
        return FolderState(None if self.served else Problem(UNREACHABLE, "nobody answers"))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory(), grace=3600.0, glance_interval=3600.0)
    world.owner = Owner()
    yield world
    await world.stop()


async def indexed(world: World) -> Indexer:
    replica = await world.start()
    await world.write(PATH, section("secret") + section("more"))
    await world.write(OTHER, section("other"))
    await world.idle()
    return replica


async def held(world: World, path: str) -> list[int]:
    """How many chunks of a file each store holds."""
    stores = (world.engines.vectors, world.engines.texts)
    return [sum([len(page) async for page in store.scan(SCOPE, path)]) for store in stores]


async def left_behind(world: World, birth: Revision) -> None:
    """Write a chunk as an indexer does that was slow, and will never commit."""
    chunk = Chunk("late", FileKey(SCOPE, PATH), "late", "", Source.MEMORY, False, "", (), birth, "late", "late", "")
    await world.engines.vectors.upsert([EmbeddedChunk(chunk, vector_of("late"))])
    await world.engines.texts.upsert([chunk])


async def at_last(world: World, replica: Indexer, order: PurgeOrder) -> PurgeReceipt:
    """Purge when the time is over until which an older state could be written."""
    lease, world.settings.lease = world.settings.lease, 0.0
    try:
        return await replica.purge(order, timeout=5.0)
    finally:
        world.settings.lease = lease


async def test_a_deleted_file_is_erased_at_once_and_verified_later(world: World) -> None:
    replica = await indexed(world)
    birth = world.last[PATH]
    await world.delete(PATH)
    await world.idle()
    assert await held(world, PATH) == [2, 2]  # the grace
    receipt = await replica.purge(FILE, timeout=5.0)
    assert receipt.files == (PurgedFile(SCOPE, PATH, 2, 2),)
    assert await held(world, PATH) == [0, 0]
    await left_behind(world, birth)
    receipt = await at_last(world, replica, FILE)
    assert (receipt.files, receipt.verified) == ((PurgedFile(SCOPE, PATH, 1, 1),), True)
    assert await held(world, PATH) == [0, 0]
    assert await held(world, OTHER) == [1, 1]
    logged = await world.engines.log.get(FileKey(SCOPE, PATH))
    assert logged is not None
    assert logged.state.deleted
    await world.check_rest()


async def test_vectors_that_are_kept_in_memory_go_with_the_texts(world: World) -> None:
    replica = await indexed(world)
    await world.delete(PATH)
    await replica.purge(FILE, timeout=5.0)
    embedded = world.embedded()
    await world.write(PATH, section("secret"))
    await world.idle()
    assert world.embedded() == embedded + 1


async def test_it_says_when_it_can_be_verified(world: World) -> None:
    replica = await indexed(world)
    receipt = await replica.purge(PurgeOrder(SCOPE.tenant, SCOPE.workspace, PATH, block=True), timeout=5.0)
    assert not receipt.verified
    assert world.settings.lease < receipt.again_in <= world.settings.lease * 1.2


async def test_a_file_that_is_still_there_is_refused(world: World) -> None:
    replica = await indexed(world)
    with pytest.raises(PreconditionFailedError, match="still in its folder") as refused:
        await replica.purge(FILE, timeout=5.0)
    assert refused.value.reason == "STILL_THERE"
    assert world.owner.synced == [SCOPE]
    assert await held(world, PATH) == [2, 2]


async def test_a_blocked_file_is_erased_and_stays_away_until_it_is_unblocked(world: World) -> None:
    replica = await indexed(world)
    order = PurgeOrder(SCOPE.tenant, SCOPE.workspace, PATH, block=True)
    assert (await replica.purge(order, timeout=5.0)).files == (PurgedFile(SCOPE, PATH, 2, 2),)
    assert (await at_last(world, replica, order)).verified
    assert await held(world, PATH) == [0, 0]
    (aside,) = (await replica.status(SCOPE)).quarantined
    assert (aside.path, aside.problem.reason) == (PATH, "BLOCKED")
    assert await replica.unblock(FileKey(SCOPE, PATH), timeout=5.0)
    assert not await replica.unblock(FileKey(SCOPE, PATH), timeout=5.0)
    logged = await world.engines.log.get(FileKey(SCOPE, PATH))
    assert logged is not None
    world.last[PATH] = logged.revision
    await world.write(PATH, section("back again"))
    await world.idle()
    assert await held(world, PATH) == [1, 1]


async def test_a_workspace_that_is_served_is_refused(world: World) -> None:
    replica = await indexed(world)
    with pytest.raises(PreconditionFailedError, match="still served") as refused:
        await replica.purge(ALL, timeout=5.0)
    assert refused.value.reason == "STILL_SERVED"


@pytest.mark.parametrize("order", [ALL, PurgeOrder(SCOPE.tenant)])
async def test_a_workspace_is_removed_with_what_nobody_knew_of(world: World, order: PurgeOrder) -> None:
    replica = await indexed(world)
    world.owner.served = False
    await left_behind(world, world.last[PATH])
    receipt = await replica.purge(order, timeout=5.0)
    assert {file.path: (file.vectors, file.texts) for file in receipt.files} == {PATH: (3, 3), OTHER: (1, 1)}
    assert (await at_last(world, replica, order)).verified
    assert await ids(world.engines.vectors) == await ids(world.engines.texts) == set()
    assert [logged.state.deleted async for logged in world.engines.log.scan(SCOPE)] == [True, True]


async def test_what_is_not_known_is_not_found(world: World) -> None:
    replica = await indexed(world)
    with pytest.raises(NotFoundError, match="nothing is known of acme/garden/memory/none"):
        await replica.purge(PurgeOrder(SCOPE.tenant, SCOPE.workspace, "memory/none.md"), timeout=5.0)


async def test_another_tenants_workspace_of_the_same_name_is_left_alone(world: World) -> None:
    replica = await indexed(world)
    with pytest.raises(NotFoundError):
        await replica.purge(PurgeOrder("rival", SCOPE.workspace, PATH), timeout=5.0)
    assert await held(world, PATH) == [2, 2]


async def test_a_busy_indexer_is_waited_for_no_longer_than_asked(world: World) -> None:
    replica = await indexed(world)
    await world.stop()
    await world.delete(PATH)
    receipt = await replica.purge(FILE, timeout=0.05)
    assert (receipt.files, receipt.verified) == ((), False)


async def test_a_file_that_comes_back_meanwhile_is_not_overwritten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await indexed(world)
    await world.delete(PATH)
    await world.idle()
    get, back = world.engines.log.get, section("it is back")

    async def get_and_come_back(key: FileKey) -> LoggedFile | None:
        logged = await get(key)
        if logged is not None and logged.state.deleted:
            await world.write(PATH, back)
        return logged

    monkeypatch.setattr(world.engines.log, "get", get_and_come_back)
    await at_last(world, replica, FILE)
    await world.idle()
    logged = await get(FileKey(SCOPE, PATH))
    assert logged is not None
    assert logged.state.content == back.encode()
    assert await world.search()


async def test_a_file_that_comes_back_unreadable_before_its_deletion_is_indexed_is_not_verified(world: World) -> None:
    replica = await indexed(world)
    world.gate.stepping = True
    await world.gate.quiet()
    await world.delete(PATH)
    purge = asyncio.create_task(replica.purge(FILE, timeout=5.0))
    await world.gate.quiet()
    (look,) = [waiting for waiting in world.gate.waiting if waiting.name == "log.get"]
    await world.gate.step(look)
    await world.set_aside(PATH, "UNREADABLE")
    world.gate.open()
    receipt = await purge
    assert await held(world, PATH) == [2, 2]  # the outline lists the old text again
    assert (receipt.verified, receipt.waits_for) == (False, "a file that has come back, or a store that still has some")
    with pytest.raises(PreconditionFailedError, match="still in its folder"):
        await replica.purge(FILE, timeout=5.0)
    await world.delete(PATH)
    assert (await replica.purge(FILE, timeout=5.0)).verified
    assert await held(world, PATH) == [0, 0]
