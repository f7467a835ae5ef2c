"""What repair finds where a part has lost what it held, and that indexing mends it."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision
from memoryd.domain.names import Scope
from memoryd.domain.repairs import Checkup, Defect, Treatment
from memoryd.errors import STORE_LOST, UnavailableError
from services.indexer.repair.inspect import Inspector
from services.indexer.repair.mend import blocked_state
from services.indexer.service import Indexer
from tests.support.fakes import MemoryFileLog, MemoryManifest
from tests.support.indexing import SCOPE, Engines, World, ids, section, until

PATHS = ["memory/a.md", "memory/b.md", "memory/c.md"]


@dataclass
class Owner:
    """The owner of a folder: puts what it holds when it is asked to."""

    world: World
    files: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None

    async def sync(self, scope: Scope, timeout: float) -> int:
        if self.error:
            raise self.error
        for path, text in self.files.items():
            await self.world.write(path, text)
        return len(self.files)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    # Nothing is done by the job: tests ask for each check, and so see what it finds.
    world = World(Engines.in_memory(), glance_interval=3600.0)
    yield world
    await world.stop()


async def indexed(world: World) -> Indexer:
    """Index three files, and let the job's first round pass."""
    for path in PATHS:
        await world.write(path, section(path) + section("more"))
    replica = await world.start()
    await world.idle()

    async def checked() -> bool:
        return SCOPE in replica.repairer.checked

    await until(checked)
    assert (await replica.repairer.check(SCOPE)).findings == ()
    return replica


def found(checkup: Checkup) -> dict[str, tuple[Defect, Treatment]]:
    return {finding.path: (finding.defect, finding.treatment) for finding in checkup.findings}


async def mended(world: World, replica: Indexer) -> None:
    """What was found is mended when it is indexed, and nothing is left to find."""
    world.last = {f.state.key.path: f.revision async for f in world.engines.log.scan(SCOPE)}
    for path, revision in world.last.items():
        logged = await world.engines.log.get(FileKey(SCOPE, path))
        assert logged is not None
        world.history[path, revision] = logged.state
    await world.idle()
    assert (await replica.repairer.check(SCOPE)).findings == ()
    await world.check_rest()


@pytest.mark.parametrize("name", ["vectors", "texts"])
async def test_an_emptied_store_is_filled_again(world: World, name: str) -> None:
    replica = await indexed(world)
    store = getattr(world.engines, name)
    await store.delete(SCOPE, list(await ids(store)))
    embedded = world.embedded()
    checkup = await replica.repairer.check(SCOPE)
    assert found(checkup) == dict.fromkeys(PATHS, (Defect.CHUNKS_LOST, Treatment.QUEUED))
    assert {(each.vectors, each.texts) for each in checkup.findings} == {(2, 0) if name == "vectors" else (0, 2)}
    await mended(world, replica)
    # The vectors of the indexer's last texts are still known, and else found in the store.
    assert world.embedded() == embedded


async def test_one_lost_chunk_is_born_anew_and_its_neighbour_stays(world: World) -> None:
    replica = await indexed(world)
    outline = await world.engines.manifest.outline(FileKey(SCOPE, PATHS[0]))
    assert outline is not None
    first, second = outline.by_id
    await world.engines.texts.delete(SCOPE, [first])
    assert found(await replica.repairer.check(SCOPE)) == {PATHS[0]: (Defect.CHUNKS_LOST, Treatment.QUEUED)}
    await world.idle()
    outline = await world.engines.manifest.outline(FileKey(SCOPE, PATHS[0]))
    assert outline is not None
    assert second in outline.by_id
    assert first not in outline.by_id
    await mended(world, replica)


async def test_a_check_without_mending_changes_nothing(world: World) -> None:
    replica = await indexed(world)
    await world.engines.texts.delete(SCOPE, list(await ids(world.engines.texts)))
    calls = len([call for call in world.gate.calls if call.name == "log.put"])
    checkup = await replica.repairer.check(SCOPE, mend=False)
    assert found(checkup) == dict.fromkeys(PATHS, (Defect.CHUNKS_LOST, Treatment.NONE))
    assert len([call for call in world.gate.calls if call.name == "log.put"]) == calls


async def test_a_lost_manifest_is_made_again_without_the_embedder(world: World) -> None:
    await indexed(world)
    await world.delete(PATHS[2])
    await world.idle()
    await world.stop()
    world.engines.manifest = MemoryManifest()
    embedded = world.embedded()
    replica = await world.start("later")
    checkup = await replica.repairer.check(SCOPE)  # or the job's first round was faster
    assert found(checkup) in ({}, dict.fromkeys(PATHS, (Defect.NOT_INDEXED, Treatment.QUEUED)))
    await mended(world, replica)
    assert world.embedded() == embedded


async def lose_log(world: World) -> tuple[Indexer, Owner]:
    """Lose the log, with what it knew; its next revisions are later than all before."""
    await indexed(world)
    await world.stop()
    log = MemoryFileLog()
    log._sequence = 1000  # noqa: SLF001  (stands for a new epoch)
    world.engines.log = log
    world.last.clear()
    owner = Owner(world)
    world.owner = owner
    replica = await world.start("later")
    return replica, owner


async def test_files_deleted_while_the_log_was_lost_get_tombstones(world: World) -> None:
    replica, owner = await lose_log(world)
    owner.files = {PATHS[0]: section(PATHS[0]) + section("more")}
    checkup = await replica.repairer.check(SCOPE)
    assert found(checkup) == {
        PATHS[0]: (Defect.NOT_LOGGED, Treatment.QUEUED),
        PATHS[1]: (Defect.NOT_LOGGED, Treatment.TOMBSTONED),
        PATHS[2]: (Defect.NOT_LOGGED, Treatment.TOMBSTONED),
    }
    await mended(world, replica)
    assert {result.path for result in await world.search()} == {PATHS[0]}


@pytest.mark.parametrize("error", [UnavailableError("the machine is off"), None])
async def test_nothing_is_deleted_while_the_owner_is_away_or_its_folder_empty(
    world: World, error: Exception | None
) -> None:
    replica, owner = await lose_log(world)
    owner.error = error
    checkup = await replica.repairer.check(SCOPE)
    assert found(checkup) == dict.fromkeys(PATHS, (Defect.NOT_LOGGED, Treatment.LEFT))
    assert ("the machine is off" if error else "no file at all") in checkup.findings[0].detail
    assert {result.path for result in await world.search()} == set(PATHS)


async def test_chunks_that_nobody_knows_are_collected(world: World) -> None:
    replica, owner = await lose_log(world)
    world.engines.manifest = MemoryManifest()
    await world.stop()
    replica = await world.start("after both were lost")
    owner.files = {"memory/new.md": section("new")}
    await world.write("memory/other.md", section("other"))
    await world.idle()
    # The job's first round may have been faster.
    tombstoned = dict.fromkeys(PATHS, (Defect.ORPHANED, Treatment.TOMBSTONED))
    assert found(await replica.repairer.check(SCOPE)) in ({}, tombstoned)
    await mended(world, replica)
    assert {result.path for result in await world.search()} == {"memory/new.md", "memory/other.md"}


async def test_lost_chunks_of_a_file_that_is_set_aside_are_shown_no_more(world: World) -> None:
    replica = await indexed(world)
    await world.set_aside(PATHS[0], "TOO_LARGE")
    await world.idle()
    outline = await world.engines.manifest.outline(FileKey(SCOPE, PATHS[0]))
    assert outline is not None
    first, second = outline.by_id
    await world.engines.vectors.delete(SCOPE, [first])
    assert found(await replica.repairer.check(SCOPE)) == {PATHS[0]: (Defect.CHUNKS_LOST, Treatment.QUEUED)}
    await world.idle()
    outline = await world.engines.manifest.outline(FileKey(SCOPE, PATHS[0]))
    assert outline is not None
    assert (list(outline.by_id), outline.problem and outline.problem.reason) == ([second], "TOO_LARGE")
    assert (await replica.repairer.check(SCOPE)).findings == ()


async def test_a_block_outlives_its_log(world: World) -> None:
    replica = await indexed(world)
    await world.put(blocked_state(FileKey(SCOPE, PATHS[0])))
    await world.idle()
    assert PATHS[0] not in {result.path for result in await world.search()}
    # A log that was lost, and an owner that puts the file again: the outline still says that it is blocked.
    await world.write(PATHS[0], section("again"))
    await world.idle()
    assert PATHS[0] not in {result.path for result in await world.search()}
    assert found(await replica.repairer.check(SCOPE)) == {PATHS[0]: (Defect.BLOCK_LOST, Treatment.QUEUED)}
    logged = await world.engines.log.get(FileKey(SCOPE, PATHS[0]))
    assert logged is not None
    assert logged.state.content is None
    world.last[PATHS[0]] = logged.revision
    await world.delete(PATHS[0])
    await world.idle()
    await world.write(PATHS[0], section("unblocked"))
    await world.idle()
    assert PATHS[0] in {result.path for result in await world.search()}


async def test_while_states_are_pending_nothing_counts_as_not_indexed(world: World) -> None:
    replica = await indexed(world)
    world.embedder.fault = lambda texts: UnavailableError("away")
    await world.write("memory/new.md", section("new"))
    checkup = await replica.repairer.check(SCOPE)
    assert (checkup.findings, checkup.pending, checkup.judged) == ((), 1, False)


async def test_a_store_that_says_that_it_lost_something_is_looked_after_at_once(world: World) -> None:
    replica = await indexed(world)
    store = world.engines.texts
    await store.delete(SCOPE, list(await ids(store)))
    refused = [UnavailableError("an index is lost", reason=STORE_LOST)]
    whole, upsert = set(await ids(world.engines.vectors)), store.upsert

    async def lost(chunks: object) -> None:
        if refused:
            raise refused.pop()
        await upsert(chunks)  # type: ignore[arg-type]  # as it came

    store.upsert = lost  # type: ignore[method-assign]  # as an adapter does whose index was deleted
    await world.write("memory/new.md", section("new"))

    async def full() -> bool:
        outlines = (await world.engines.manifest.view(SCOPE)).outlines.values()
        listed = {name for outline in outlines for name in outline.by_id}
        return listed <= await ids(store) and len(listed) > len(whole)

    await until(full)
    assert replica.repairer.checked


def test_a_block_says_how_to_take_it_back() -> None:
    state = blocked_state(FileKey(SCOPE, "a.md"))
    assert isinstance(state.problem, Problem)
    assert "--unblock" in state.problem.detail


class ManyWaiting(MemoryFileLog):
    """A log whose states all wait; it counts how many of those that a scan has given are still held."""

    held = 0

    async def scan(self, scope: Scope) -> AsyncIterator[LoggedFile]:
        before = self._alive()
        for number in range(1000):
            yield LoggedFile(FileState.deletion(FileKey(scope, f"memory/{number}.md"), 0.0), Revision(1, number + 1))
        self.held = self._alive() - before

    async def pending(self, consumer: str, scope: Scope) -> int:
        return 1000

    @staticmethod
    def _alive() -> int:
        return sum(type(each) is LoggedFile for each in gc.get_objects())


async def test_states_that_wait_are_not_held_while_all_is_compared() -> None:
    engines, log = Engines.in_memory(), ManyWaiting()
    inspector = Inspector(
        log=log,
        manifest=engines.manifest,
        vectors=engines.vectors,
        texts=engines.texts,
        consumer="indexer",
        timeout=10.0,
        on_stray=lambda *_: None,
    )

    checkup = await inspector.inspect(SCOPE)

    assert (checkup.pending, checkup.findings, checkup.judged) == (1000, (), False)
    assert log.held < 10
