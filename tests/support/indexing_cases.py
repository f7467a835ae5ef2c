"""What must be true of indexing on any engines: written once, run on ports in memory and on the real engines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memoryd.domain.chunks import Chunk
from memoryd.errors import InvalidInputError, UnavailableError
from memoryd.ports import Filter
from tests.support.asking import COMMON
from tests.support.fakes import vector_of
from tests.support.gate import Outcome
from tests.support.hits import vector_hits
from tests.support.indexing import ALL, SCOPE, World, ids, section, until_waiting

MANY = "\n".join(section(f"plant {number}") for number in range(200))


class IndexingCases:
    """Needs a fixture `world`."""

    @pytest.mark.parametrize("case", [pytest.param("blank-line", id="blank-line")])
    async def test_a_blank_line_at_the_top_costs_nothing(self, world: World, case: str) -> None:
        await world.start()
        await world.write("memory/a.md", MANY)
        assert (await world.idle()).chunks == 200
        written, embedded = world.written(), world.embedded()
        await world.write("memory/a.md", "\n" + MANY)
        await world.idle()
        assert (world.written(), world.embedded()) == (written, embedded)
        world.check_s1(found := await world.search())
        assert min(result.start_line for result in found) == 2
        await world.check_rest()

    async def test_an_edited_line_costs_at_most_three_embeddings(self, world: World) -> None:
        await world.start()
        await world.write("memory/a.md", MANY)
        await world.idle()
        embedded = world.embedded()
        await world.write("memory/a.md", MANY.replace("plant 77 with", "plant 77, edited, with"))
        await world.idle()
        assert 1 <= world.embedded() - embedded <= 3
        await world.check_rest()

    @pytest.mark.parametrize("case", [pytest.param("rename", id="rename")])
    @pytest.mark.parametrize("delete_first", [True, False])
    async def test_a_rename_embeds_nothing(self, world: World, case: str, delete_first: bool) -> None:
        await world.start()
        await world.write("memory/a.md", MANY)
        await world.idle()
        embedded = world.embedded()
        world.settings.grace = 60.0
        if delete_first:
            await world.delete("memory/a.md")
            await world.idle()
            await world.write("memory/b.md", MANY)
        else:
            await world.write("memory/b.md", MANY)
            await world.idle()
            await world.delete("memory/a.md")
        await world.idle()
        assert world.embedded() == embedded
        assert {result.path for result in await world.search()} == {"memory/b.md"}
        world.settings.grace = 0.0
        await world.check_rest()

    async def test_equal_texts_are_embedded_once(self, world: World) -> None:
        for number in range(10):
            await world.write(f"memory/{number}.md", section("the same"))
        await world.start()
        await world.idle()
        assert world.embedded() == 1
        await world.check_rest()

    async def test_a_restart_without_change_does_nothing(self, world: World) -> None:
        for number in range(5):
            await world.write(f"memory/{number}.md", section(str(number)))
        await world.start()
        await world.idle()
        written, calls = world.written(), world.embedder.calls
        await world.crash()
        await world.start()
        await world.deliver_again()
        await world.idle()
        assert (world.written(), world.embedder.calls) == (written, calls)
        await world.check_rest()

    @pytest.mark.parametrize("case", [pytest.param("ghost", id="ghost")])
    async def test_a_deleted_file_is_gone_or_pending(self, world: World, case: str) -> None:
        replica = await world.start()
        await world.write("memory/a.md", section("ghost"))
        await world.idle()
        world.gate.stepping = True
        await world.delete("memory/a.md")
        assert (await world.engines.log.pending(world.settings.consumer, SCOPE)) == 1
        world.gate.open()
        status = await world.idle()
        assert await world.search() == []
        assert (status.files, status.chunks) == (0, 0)
        assert replica is world.replicas["one"]
        await world.check_rest()

    @pytest.mark.parametrize("case", [pytest.param("transient", id="transient")])
    async def test_a_transient_failure_loses_nothing(self, world: World, case: str) -> None:
        failures = ["plant 3", "plant 7"]

        def fault(texts: Sequence[str]) -> Exception | None:
            for word in failures:
                if any(word in text for text in texts):
                    failures.remove(word)
                    return UnavailableError("away for a moment")
            return None

        world.embedder.fault = fault
        for number in range(10):
            await world.write(f"memory/{number}.md", section(f"plant {number}"))
        replica = await world.start()
        async for status in replica.progress(SCOPE):
            assert status.pending or status.files == 10
        assert not failures
        await world.check_rest()

    async def test_what_makes_the_model_fail_is_set_aside_and_tried_again_when_it_changes(self, world: World) -> None:
        def fault(texts: Sequence[str]) -> Exception | None:
            return InvalidInputError("can't be encoded") if any("poison" in text for text in texts) else None

        world.embedder.fault = fault
        for word in ("iris", "poison", "moss"):
            await world.write(f"memory/{word}.md", section(word))
        await world.start()
        status = await world.idle()
        assert [(file.path, file.problem.reason) for file in status.quarantined] == [("memory/poison.md", "POISON")]
        assert status.files == 2
        await world.write("memory/poison.md", section("mended"))
        status = await world.idle()
        assert (status.files, status.quarantined) == (3, ())
        await world.check_rest()

    @pytest.mark.parametrize("case", [pytest.param("two-writers", id="two-writers")])
    async def test_two_indexers_with_the_same_event(self, world: World, case: str) -> None:
        await world.write("memory/a.md", section("one") + "\n" + section("two"))
        world.gate.stepping = True
        await world.start("one")
        await world.start("two")
        await until_waiting(world.gate, "manifest.commit", "one")
        await world.deliver_again()
        await until_waiting(world.gate, "manifest.commit", "two")
        assert len(await ids(world.engines.vectors)) == 2
        world.gate.open()
        await world.idle()
        assert [len(await ids(store)) for store in (world.engines.vectors, world.engines.texts)] == [2, 2]
        await world.check_rest()

    @pytest.mark.parametrize("case", [pytest.param("crash-mid", id="crash-mid")])
    @pytest.mark.parametrize("first", ["vectors", "texts"])
    async def test_a_crash_between_the_two_store_writes(self, world: World, case: str, first: str) -> None:
        second = "texts" if first == "vectors" else "vectors"
        await world.start()
        await world.write("memory/a.md", section("old"))
        await world.idle()
        world.gate.stepping = True
        await world.write("memory/a.md", section("new") + "\n" + section("newer"))
        await world.gate.quiet()
        writing = await until_waiting(world.gate, f"{first}.upsert")
        await world.gate.step(writing)
        assert any(waiting.name == f"{second}.upsert" for waiting in world.gate.waiting)
        await world.crash()
        stores = {"vectors": world.engines.vectors, "texts": world.engines.texts}
        assert len(await ids(stores[first])) == len(await ids(stores[second])) + 2
        world.gate.open()
        world.check_s1(found := await world.search())
        assert len(found) == 1
        await world.start()
        await world.deliver_again()
        await world.check_rest()

    async def test_a_slow_indexer_that_wakes_after_a_delete(self, world: World) -> None:
        await world.write("memory/a.md", section("slow") + "\n" + section("slower"))
        world.gate.stepping = True
        await world.start("slow")
        commit = await until_waiting(world.gate, "manifest.commit", "slow")
        await world.delete("memory/a.md")
        await world.start("two")
        await until_waiting(world.gate, "delivery.ack", "two")
        outlines = (await world.engines.manifest.view(SCOPE)).outlines
        assert outlines["memory/a.md"].deleted
        await world.gate.step(commit)
        assert (await world.engines.manifest.view(SCOPE)).outlines == outlines
        await world.check_rest()

    async def test_a_slow_indexer_that_wakes_after_the_sweep(self, world: World) -> None:
        """Its late writes bring no chunk back to searches, and the next sweep collects them."""
        await world.write("memory/a.md", section("slow"))
        world.gate.stepping = True
        await world.start("slow")
        await until_waiting(world.gate, "vectors.upsert", "slow")
        late = [waiting for waiting in world.gate.waiting if waiting.name.endswith(".upsert")]
        await world.write("memory/a.md", section("quick"))
        world.gate.waiting = [waiting for waiting in world.gate.waiting if waiting not in late]
        world.gate.stepping = False
        await world.start("quick")
        await world.idle()
        await world.sweep()
        for waiting in late:
            waiting.go.set_result(Outcome.DONE)
        found = await world.search()
        assert [result.chunk.text for result in found] == [section("quick").rstrip("\n")]
        await world.check_rest()

    async def test_a_text_comes_back_while_a_slow_sweeper_deletes_it(self, world: World) -> None:
        """It is born again under another id: an id that came back would be deleted though it is listed."""
        await world.start("one")
        await world.write("memory/a.md", section("back"))
        await world.idle()
        world.gate.stepping = True
        await world.write("memory/a.md", section("other"))
        delete = await until_waiting(world.gate, "vectors.delete", "one")
        await world.start("two")
        await world.write("memory/a.md", section("back"))
        await until_waiting(world.gate, "delivery.ack", "two")
        await world.gate.step(delete)
        await world.gate.step(await until_waiting(world.gate, "texts.delete", "one"))
        await world.check_s2_s3()
        await world.check_rest()

    async def test_a_lost_race_is_planned_anew(self, world: World) -> None:
        """The same plan again would list a chunk that the winner dropped and the sweeper deleted."""
        await world.start("one")
        await world.write("memory/a.md", section("kept"))
        await world.idle()
        world.gate.stepping = True
        await world.write("memory/a.md", section("other"))
        await until_waiting(world.gate, "manifest.commit", "one")
        await world.start("two")
        await world.write("memory/a.md", section("kept") + "\n" + section("more"))
        lost = await until_waiting(world.gate, "manifest.commit", "two")
        won = await until_waiting(world.gate, "manifest.commit", "one")
        await world.gate.step(won)
        await world.sweep()
        assert len(await ids(world.engines.texts)) == 2
        await world.gate.step(lost)
        await world.check_s2_s3()
        await world.check_rest()

    async def test_an_older_event_delivered_late_changes_nothing(self, world: World) -> None:
        await world.write("memory/a.md", section("old"))
        world.gate.stepping = True
        await world.start("slow")
        read = await until_waiting(world.gate, "manifest.outline", "slow")
        newer = await world.write("memory/a.md", section("new"))
        await world.start("two")
        await until_waiting(world.gate, "delivery.ack", "two")
        await world.gate.step(read)
        acknowledged = [w for w in world.gate.waiting if w.actor == "slow"]
        assert "delivery.ack" in {waiting.name for waiting in acknowledged}
        assert (await world.engines.manifest.view(SCOPE)).outlines["memory/a.md"].revision == newer
        await world.check_rest()

    async def test_a_file_set_aside_keeps_its_chunks_and_comes_back(self, world: World) -> None:
        await world.start()
        await world.write("memory/a.md", section("good"))
        await world.idle()
        await world.set_aside("memory/a.md", "UNREADABLE")
        status = await world.idle()
        assert [(each.path, each.problem.reason) for each in status.quarantined] == [("memory/a.md", "UNREADABLE")]
        assert status.files == 0
        world.check_s1(found := await world.search())
        assert len(found) == 1
        await world.write("memory/a.md", section("better"))
        status = await world.idle()
        assert (status.files, status.quarantined) == (1, ())
        await world.check_rest()

    async def test_a_flag_alone_changes_what_is_found(self, world: World) -> None:
        await world.start()
        await world.write("memory/a.md", section("mine"))
        await world.idle()
        embedded = world.embedded()
        await world.write("memory/a.md", section("mine"), private=True)
        await world.idle()
        assert world.embedded() == embedded
        assert [result.private for result in await world.search()] == [True]
        await world.check_rest()

    async def test_both_stores_hold_the_same_fields(self, world: World) -> None:
        await world.start()
        await world.write("memory/2026-05-14.md", "---\ntags: [b, a]\n---\n" + section("stored"), private=True)
        await world.idle()
        (by_vector,) = await vector_hits(world.engines.vectors, vector_of("query"), Filter(SCOPE), ALL)
        (chunk,) = [found.chunk for found in await world.search()]
        assert by_vector.chunk == chunk
        assert (chunk.date, chunk.tags, chunk.private) == ("2026-05-14", ("a", "b"), True)
        assert COMMON in _terms(chunk)


def _terms(chunk: Chunk) -> list[str]:
    """List the terms, where the store returns them."""
    return chunk.terms.split() or [COMMON]
