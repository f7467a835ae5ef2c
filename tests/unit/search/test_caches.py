"""What is kept of queries and answers, and when it is not used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY

from memoryd.domain.files import FileKey, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from memoryd.domain.queries import Chat, Mode, SearchAnswer, SearchQuery
from memoryd.errors import DeadlineExceededError, UnavailableError
from memoryd.ports import Embeddings, Lane, TextKind
from services.search.answers import Answers
from services.search.embeddings import CachingEmbedder
from services.search.flights import Flights
from services.search.settings import SearchSettings
from tests.support.fakes import FakeEmbedder
from tests.support.searching import SCOPE, World


class SlowModel(FakeEmbedder):
    """Embeds when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:  # noqa: ANN401  (passed on)
        await self.go.wait()
        return await super().embed(texts, **options)


async def test_an_answer_is_given_again_until_something_changes(world: World) -> None:
    first = await world.search()
    asked = len(world.texts.limits)
    again = await world.search()
    assert (again.results, again.revision, again.mode) == (first.results, first.revision, first.mode)
    assert len(world.texts.limits) == asked
    await world.put("c.md", "the ferry of the harbour")
    assert "c.md" in {result.path for result in (await world.search()).results}


async def test_answers_differ_by_all_that_is_asked_and_by_who_listens(world: World) -> None:
    await world.put("MEMORY.md", "the ferry of the harbour is secret", private=True)
    assert "MEMORY.md" in {result.path for result in (await world.search()).results}
    assert "MEMORY.md" not in {result.path for result in (await world.search(chat=Chat.GROUP)).results}
    assert len((await world.search(max_results=1)).results) == 1
    assert (await world.search(mode=Mode.TEXT)).mode is Mode.TEXT
    assert (await world.search(explain=True)).results[0].explanation


async def test_a_degraded_answer_is_not_kept(world: World) -> None:
    world.texts.error = UnavailableError("the text store is down")
    assert (await world.search()).degraded
    world.texts.error = None
    assert not (await world.search()).degraded


async def test_what_is_pending_is_asked_each_time(world: World) -> None:
    await world.search()
    pending = iter([2, 0])

    async def count(consumer: str, scope: Scope) -> int:
        return next(pending)

    world.log.pending = count  # type: ignore[method-assign]  # as the log would say
    assert ((await world.search()).pending, (await world.search()).pending) == (2, 0)


async def test_while_the_manifest_is_away_nothing_comes_from_memory(world: World) -> None:
    """Another process may have purged a file meanwhile: its chunks are gone from the stores."""
    assert {result.path for result in (await world.search()).results} == {"a.md", "b.md"}
    world.manifest.error = UnavailableError("NATS is down")
    for store in (world.vectors.store, world.texts.store):
        await store.delete(SCOPE, [name for name, chunk in store.held.items() if chunk.key.path == "b.md"])
    assert {result.path for result in (await world.search()).results} == {"a.md"}


async def test_a_purged_file_leaves_with_the_next_search_or_at_once(world: World) -> None:
    await world.search()
    before = world.service.answers.size
    outline = await world.manifest.outline(FileKey(SCOPE, "b.md"))
    assert outline is not None
    await world.manifest.commit(replace(outline, revision=Revision(1, 9), chunks=(), deleted=True))
    await world.search("square", mode=Mode.TEXT)
    assert 0 < world.service.answers.size < before
    world.service.forget(SCOPE)
    assert world.service.answers.size == 0


async def test_caches_are_bounded(world: World) -> None:
    world.service = replace(world.service, settings=SearchSettings(answer_cache_bytes=20_000, vector_cache_bytes=2_000))
    for number in range(100):
        await world.search(f"ferry {number}")
    assert 0 < world.service.answers.size <= 20_000
    world.service = replace(world.service, settings=SearchSettings(answer_cache_bytes=0, vector_cache_bytes=0))
    calls = world.embedder.calls
    for _ in range(2):
        await world.search()
    assert world.embedder.calls == calls + 2


async def test_the_same_searches_at_one_time_are_done_once(world: World) -> None:
    def lookups() -> list[float]:
        labels = ({"cache": "answers", "outcome": outcome} for outcome in ("miss", "shared", "hit"))
        return [REGISTRY.get_sample_value("memoryd_search_cache_lookups_total", each) or 0.0 for each in labels]

    before = lookups()
    world.texts.delay = 0.05
    answers = await asyncio.gather(*(world.search() for _ in range(20)))
    assert len(world.texts.limits) == 1
    assert len({answer.results for answer in answers}) == 1
    await world.search()
    assert [now - then for now, then in zip(lookups(), before, strict=True)] == [1, 19, 1]


async def test_an_answer_that_two_wait_for_is_whole_when_the_first_has_gone() -> None:
    world = World()
    slow = SlowModel()
    world.service.embedder = slow
    world.service.__post_init__()
    await world.log.subscribe("indexer")
    await world.put("a.md", "the ferry leaves the harbour")
    first, second = (asyncio.create_task(world.search()) for _ in range(2))
    await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.wait({first})
    slow.go.set()
    answer = await second
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, ())


async def test_answers_are_never_those_of_another_view() -> None:
    """Sequences may come again, where a manifest is lost and begun anew."""
    answers, query = Answers(1 << 20, 60.0), SearchQuery("ferry")

    def making(revision: str) -> SearchAnswer:
        return SearchAnswer((), Mode.TEXT, None, False, 0, (), {}, revision)

    async def get(view: WorkspaceView, revision: str) -> str:
        async def make() -> SearchAnswer:
            return making(revision)

        return (await answers.get(SCOPE, view, query, 1.0, make)).revision

    one, other = WorkspaceView(1), WorkspaceView(1)
    assert [await get(one, "a"), await get(one, "b"), await get(other, "c"), await get(one, "d")] == [
        "a",
        "a",
        "c",
        "d",
    ]


async def test_a_query_is_embedded_once() -> None:
    model = FakeEmbedder()
    embedder = CachingEmbedder(model, 1 << 20)

    async def embed(text: str, kind: TextKind = TextKind.QUERY, lane: Lane = Lane.QUERY) -> bytes:
        return (await embedder.embed([text], kind=kind, lane=lane, timeout=5.0)).vectors.tobytes()

    first = await embed("the ferry")
    assert await embed("  the\n ferry ") == first
    assert model.calls == 1
    assert await embed("The ferry") != first
    await embed("the ferry", TextKind.PASSAGE)
    await embed("the ferry", lane=Lane.BULK)
    assert model.calls == 4
    assert np.frombuffer(await embed("caf\u0065\u0301"), np.float32).tolist() == (
        np.frombuffer(await embed("caf\u00e9"), np.float32).tolist()
    )


async def test_a_failed_embedding_is_not_kept() -> None:
    model = FakeEmbedder()
    embedder = CachingEmbedder(model, 1 << 20)
    model.fault = lambda _: UnavailableError("down")
    with pytest.raises(UnavailableError):
        await embedder.embed(["ferry"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=5.0)
    model.fault = lambda _: None
    await embedder.embed(["ferry"], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=5.0)


class Work:
    """Counts how often it is done; waits for the test."""

    def __init__(self) -> None:
        self.begun, self.ended = 0, 0
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        try:
            await self.go.wait()
            if self.error:
                raise self.error
            return self.begun
        finally:
            self.ended += 1


async def join(flights: Flights[int], work: Work, end: float) -> asyncio.Task[tuple[int, bool]]:
    task = asyncio.create_task(flights.run("key", end, work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_work_goes_on_while_somebody_waits() -> None:
    flights, work, end = Flights[int](), Work(), time.monotonic() + 5
    first, second = await join(flights, work, end), await join(flights, work, end)
    first.cancel()
    await asyncio.sleep(0)
    work.go.set()
    assert await second == (1, True)
    third = await join(flights, work, end)
    assert await third == (2, False)


async def test_work_ends_when_nobody_waits() -> None:
    flights, work, end = Flights[int](), Work(), time.monotonic() + 5
    waiting = [await join(flights, work, end) for _ in range(2)]
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    late = await join(flights, work, end)  # it begins anew, whether or not the first has ended
    assert (work.begun, work.ended) == (2, 1)
    work.go.set()
    assert await late == (2, False)


async def test_a_failure_is_everybodys_and_is_not_kept() -> None:
    flights, work, end = Flights[int](), Work(), time.monotonic() + 5
    tasks = [await join(flights, work, end) for _ in range(2)]
    work.error = DeadlineExceededError("late")
    work.go.set()
    for task in tasks:
        with pytest.raises(DeadlineExceededError):
            await task
    work.error = None
    assert await flights.run("key", end, work) == (2, False)


async def test_who_has_less_time_works_alone() -> None:
    flights, work, end = Flights[int](), Work(), time.monotonic() + 5
    patient = await join(flights, work, end)
    hasty = await join(flights, work, end - 4)
    assert work.begun == 2
    work.go.set()
    assert (await patient)[1] is (await hasty)[1] is False
