"""The pipeline: groups, failures, leases, large files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from memoryd.domain.chunking import Chunked
from memoryd.domain.files import FileKey, LoggedFile
from memoryd.errors import InvalidInputError, ModelError, ResourceExhaustedError, UnavailableError
from memoryd.ports import Embeddings, IndexStatus
from services.indexer import compose, settle
from services.indexer.prepare import Preparer
from tests.support.gate import Outcome, Waiting
from tests.support.indexing import SCOPE, Engines, World, section, until, until_waiting


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(Engines.in_memory())
    yield world
    await world.stop()


def outcomes(world: World, actor: str = "one") -> dict[str, float]:
    """Count how deliveries ended."""
    families = {family.name: family for family in world.metrics[actor].collect()}
    samples = families["memoryd_indexer_files"].samples
    return {each.labels["outcome"]: each.value for each in samples if each.name.endswith("_total")}


def refuse(word: str, error: Exception, world: World) -> None:
    """Make the embedder fail for texts that hold a word."""

    def fault(texts: Sequence[str]) -> Exception | None:
        return error if any(word in text for text in texts) else None

    world.embedder.fault = fault


def quarantined(status: IndexStatus) -> dict[str, str]:
    return {each.path: each.problem.reason for each in status.quarantined}


async def test_small_files_share_one_embedding_call_and_one_upsert(world: World) -> None:
    for number in range(50):
        await world.write(f"memory/{number}.md", section(f"plant {number}"))
    await world.start()
    await world.idle()
    assert world.embedded() == 50
    assert world.embedder.calls <= 4
    names = [call.name for call in world.gate.calls]
    assert names.count("texts.upsert") <= 4
    assert names.count("manifest.commit") == names.count("delivery.ack") == 50
    await world.check_rest()


async def test_one_bad_file_does_not_hold_back_the_others(world: World) -> None:
    refuse("poison", InvalidInputError("can't be encoded"), world)
    for number in range(10):
        await world.write(f"memory/{number}.md", section("poison" if number == 4 else f"plant {number}"))
    await world.start()
    status = await world.idle()
    assert quarantined(status) == {"memory/4.md": "POISON"}
    assert status.files == 9
    assert outcomes(world) == {"indexed": 9, "retried": 2, "quarantined": 1}
    await world.write("memory/4.md", section("mended"))
    status = await world.idle()
    assert (status.files, status.quarantined) == (10, ())
    await world.check_rest()


async def test_a_poisoned_edit_keeps_the_chunks_of_before(world: World) -> None:
    refuse("poison", RuntimeError("a fault of the model"), world)
    await world.start()
    await world.write("memory/a.md", section("good"))
    await world.idle()
    with capture_logs():  # a traceback in colours takes seconds
        await world.write("memory/a.md", section("poison"))
        assert quarantined(await world.idle()) == {"memory/a.md": "POISON"}
    assert ["good" in result.chunk.text for result in await world.search()] == [True]


async def test_a_text_that_a_store_refuses_is_isolated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = world.engines.texts.upsert

    async def upsert(chunks: Sequence[object]) -> None:
        if any("poison" in str(chunk) for chunk in chunks):
            raise InvalidInputError("too many terms")
        await accept(chunks)  # type: ignore[arg-type]  # chunks

    monkeypatch.setattr(world.engines.texts, "upsert", upsert)
    for word in "poison", "iris", "moss":
        await world.write(f"memory/{word}.md", section(word))
    await world.start()
    status = await world.idle()
    assert quarantined(status) == {"memory/poison.md": "POISON"}
    assert status.files == 2


@pytest.mark.parametrize(
    "error", [UnavailableError("away"), ModelError("not there"), TimeoutError(), ConnectionResetError()]
)
async def test_what_is_away_is_waited_for(world: World, error: Exception) -> None:
    refuse("", error, world)
    await world.start()
    await world.write("memory/a.md", section("patience"))
    await _calls(world, 20)
    assert await world.engines.log.pending(world.settings.consumer, SCOPE) == 1
    refuse("no text has this", error, world)
    status = await world.idle()
    assert (status.files, status.quarantined) == (1, ())
    await world.check_rest()


async def test_a_full_queue_slows_down_and_fails_nothing(world: World) -> None:
    left = 2

    def fault(texts: Sequence[str]) -> Exception | None:
        nonlocal left
        left -= 1
        return ResourceExhaustedError("the queue is full") if left >= 0 else None

    world.embedder.fault = fault
    await world.write("memory/a.md", section("patience"))
    await world.start()
    await world.idle()
    assert outcomes(world) == {"indexed": 1}


async def test_with_the_embedder_away_deletions_and_renames_go_on(world: World) -> None:
    await world.start()
    await world.write("memory/a.md", section("kept"))
    await world.write("memory/b.md", section("gone"))
    await world.idle()
    refuse("", UnavailableError("away"), world)
    await world.delete("memory/b.md")
    await world.write("memory/c.md", section("kept"))
    status = await world.idle()
    assert (status.files, status.chunks) == (2, 2)
    await world.check_rest()


async def test_sketches_are_stored_and_found_again_with_their_vectors(world: World) -> None:
    world.embedder.sketches = True
    await world.start()
    await world.write("memory/b.md", section("kept"))
    await world.idle()
    refuse("", UnavailableError("away"), world)
    await world.write("memory/c.md", section("kept"))
    await world.idle()
    store = world.engines.vectors
    outlines = [
        await world.engines.manifest.outline(FileKey(world.scope, path)) for path in ("memory/b.md", "memory/c.md")
    ]
    names = [listed.id for outline in outlines if outline for listed in outline.chunks]
    assert len(names) == 2
    sketches = await store.sketches(world.scope, names)
    assert sorted(sketches) == sorted(names)
    assert len(set(sketches.values())) == 1


async def test_a_live_edit_overtakes_a_large_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of many groups is written slice by slice, commits once, and the edit does not wait for it."""
    world.settings.group_min_tokens = world.settings.group_max_tokens = 512
    monkeypatch.setattr(compose, "LARGE_BYTES", 4096)
    large = "\n".join(section(f"plant {number}") for number in range(300))
    await world.write("memory/large.md", large, live=False)
    await world.start()
    await _calls(world, 5)
    await world.write("memory/note.md", section("urgent"))

    async def committed() -> bool:
        return bool(_committed(world))

    await until(committed)
    assert _committed(world) == ["memory/note.md"]
    calls = world.embedder.calls
    await world.idle()
    assert world.embedder.calls > calls
    assert _committed(world) == ["memory/note.md", "memory/large.md"]
    await world.check_rest()


async def test_large_files_are_held_one_after_the_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into the bytes that are held is given back, and comes again."""
    world.settings.held_bytes = 1
    monkeypatch.setattr(compose, "LARGE_BYTES", 4096)
    monkeypatch.setattr(settle, "_GIVE_BACK", 0.02)
    held: list[int] = []
    chunk = Preparer.chunk

    async def counted(preparer: Preparer, logged: LoggedFile) -> Chunked | None:
        held.append(len(logged.state.content or b""))
        return await chunk(preparer, logged)

    monkeypatch.setattr(Preparer, "chunk", counted)
    for name in "abc":
        large = "\n".join(section(f"plant {name} {number}") for number in range(100))
        await world.write(f"memory/{name}.md", large, live=False)
    await world.start()
    await world.idle()

    assert outcomes(world)["given_back"] >= 2
    assert len(held) == 3
    await world.check_rest()


async def test_a_live_edit_waits_for_no_group_of_an_import(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The import's embeddings do not end before the edit is committed. They take turns with its own."""
    embed, held, turns = world.embedder.embed, asyncio.Event(), set()

    async def slow(texts: Sequence[str], *, tenant: str, **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        turns.add(tenant)
        if any("plant" in text for text in texts):
            await held.wait()
        return await embed(texts, tenant=tenant, **options)

    monkeypatch.setattr(world.embedder, "embed", slow)
    for number in range(5):
        await world.write(f"memory/{number}.md", section(f"plant {number}"), live=False)
    await world.start()

    async def importing() -> bool:
        return SCOPE.tenant in turns

    await until(importing)
    await world.write("memory/note.md", section("urgent"))

    async def committed() -> bool:
        return bool(_committed(world))

    await until(committed)
    assert _committed(world) == ["memory/note.md"]
    assert len(turns) == 2
    held.set()
    await world.idle()
    await world.check_rest()


async def test_an_indexer_writes_nothing_after_its_lease(world: World) -> None:
    world.settings.repair = False  # it reads beside, and would be seen waiting
    world.gate.stepping = True
    await world.start("slow")
    await world.write("memory/a.md", section("late"))
    embed = await until_waiting(world.gate, "embedder.embed", "slow")
    world.clock_offset += world.settings.lease
    before = world.written()
    await world.gate.step(embed)
    assert {waiting.name for waiting in world.gate.waiting if waiting.actor == "slow"} == {"log.fetch"}
    assert world.written() == before
    assert outcomes(world, "slow") == {"abandoned": 1}
    await world.deliver_again()
    await world.check_rest()


async def test_long_work_extends_its_lease(world: World) -> None:
    world.gate.stepping = True
    await world.start()
    await world.write("memory/a.md", section("long"))
    embed = await until_waiting(world.gate, "embedder.embed")
    world.clock_offset += 0.6 * world.settings.lease
    await world.gate.step(embed)
    await until_waiting(world.gate, "delivery.in_progress")
    world.gate.open()
    await world.idle()
    assert outcomes(world) == {"indexed": 1}


async def test_stop_finishes_what_is_in_work(world: World) -> None:
    world.gate.stepping = True
    replica = await world.start()
    await world.write("memory/a.md", section("last"))
    await until_waiting(world.gate, "vectors.upsert")
    stopping = asyncio.create_task(replica.stop(30.0))
    world.gate.open()
    await stopping
    assert await world.engines.log.pending(world.settings.consumer, SCOPE) == 0
    await replica.closed()
    await world.check_rest()


async def test_a_file_log_that_does_not_answer_ends_nothing(world: World) -> None:
    world.gate.stepping = True
    await world.start()
    for _ in range(5):
        await world.gate.step(await until_waiting(world.gate, "log.fetch"), Outcome.REFUSED)
    await world.write("memory/a.md", section("after"))
    await world.check_rest()


async def test_what_is_committed_but_not_acknowledged_is_dropped_at_the_next_delivery(world: World) -> None:
    world.gate.stepping = True
    await world.start()
    await world.write("memory/a.md", section("once"))
    ack: Waiting = await until_waiting(world.gate, "delivery.ack")
    await world.gate.step(ack, Outcome.REFUSED)
    written = world.written()
    world.gate.open()
    await world.deliver_again()
    await world.idle()
    assert world.written() == written
    assert outcomes(world)["old"] == 1
    await world.check_rest()


async def test_reindex_puts_every_file_again_and_writes_nothing(world: World) -> None:
    replica = await world.start()
    await world.write("memory/a.md", section("again"))
    await world.write("memory/b.md", section("gone"))
    await world.delete("memory/b.md")
    await world.idle()
    written = world.written()
    assert await replica.reindex(SCOPE) == 1
    await world.idle()
    assert world.written() == written


async def test_sync_needs_a_folder(world: World) -> None:
    replica = await world.start()
    with pytest.raises(UnavailableError, match="no folder of acme/garden"):
        await replica.sync(SCOPE, 1.0)


def _committed(world: World) -> list[str]:
    return [call.arguments[0].key.path for call in world.gate.calls if call.name == "manifest.commit"]


async def _calls(world: World, more_than: int) -> None:
    async def called() -> bool:
        return world.embedder.calls > more_than

    await until(called)
