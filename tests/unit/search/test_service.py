"""A search whose parts fail, are slow, or hold chunks that no outline lists."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import REGISTRY

from memoryd.domain.files import FileKey, Revision
from memoryd.domain.queries import Chat, Freshness, Mode, SearchAnswer, Stage, TypedKind, TypedQuery
from memoryd.errors import DeadlineExceededError, MemorydError, UnavailableError
from memoryd.ports import Embeddings, Filter, QueryTerm
from services.search.settings import Ranking, SearchSettings
from tests.support.fakes import (
    DIMENSIONS,
    FakeTokenizer,
)
from tests.support.hits import text_hits
from tests.support.searching import SCOPE, World


def only(answer: SearchAnswer) -> tuple[Stage, str, str]:
    (entry,) = answer.degraded
    return entry.stage, entry.reason, entry.instead


async def test_both_legs(world: World) -> None:
    answer = await world.search()
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, ())
    assert {result.path for result in answer.results} == {"a.md", "b.md"}
    assert set(answer.timings) == {Stage.EMBED, Stage.VECTOR, Stage.TEXT, Stage.FUSE}
    # What only one leg found is scored by both.
    assert all(result.vector_score is not None and result.text_score is not None for result in answer.results)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnavailableError("the embedder is down"), "UNAVAILABLE"),
        (DeadlineExceededError("too late"), "DEADLINE_EXCEEDED"),
        (ZeroDivisionError("a secret of the driver"), "INTERNAL"),
    ],
)
async def test_without_the_embedder_the_text_leg_answers(world: World, error: Exception, reason: str) -> None:
    world.embedder.fault = lambda _: error
    answer = await world.search()
    assert answer.mode is Mode.TEXT
    assert only(answer) == (Stage.EMBED, reason, "the text leg alone")
    assert answer.model is None
    assert {result.path for result in answer.results} == {"a.md", "b.md"}
    assert "secret" not in answer.degraded[0].detail
    assert "down" not in answer.degraded[0].detail  # what an adapter says is for the operator's log


async def test_without_the_text_store_the_vector_leg_answers(world: World) -> None:
    world.texts.error = UnavailableError("the text store is down")
    answer = await world.search()
    assert answer.mode is Mode.VECTOR
    assert only(answer) == (Stage.TEXT, "UNAVAILABLE", "the vector leg alone")
    assert len(answer.results) == 3


async def test_without_the_vector_store_the_text_leg_answers(world: World) -> None:
    world.vectors.error = UnavailableError("the vector store is down")
    answer = await world.search()
    assert answer.mode is Mode.TEXT
    assert only(answer)[:2] == (Stage.VECTOR, "UNAVAILABLE")
    assert max(result.score for result in answer.results) > 0.9  # a missing leg never caps the score


async def test_a_slow_leg_is_left_behind(world: World) -> None:
    world.vectors.delay = 60.0
    answer = await world.search(timeout=0.5)
    assert only(answer)[:2] == (Stage.VECTOR, "DEADLINE_EXCEEDED")
    assert answer.results


async def test_without_any_leg_the_search_is_unavailable(world: World) -> None:
    world.embedder.fault = lambda _: UnavailableError("the embedder is down")
    world.texts.error = UnavailableError("the text store is down")
    with pytest.raises(UnavailableError, match=r"embed.*text"):
        await world.search()
    with pytest.raises(MemorydError, match="the text stage needs is unavailable"):
        await world.search(mode=Mode.TEXT)


async def test_a_chunk_that_no_outline_lists_is_not_shown(world: World) -> None:
    await world.put("a.md", "the ferry sank in the harbour", listed=False, sequence=2)
    await world.put("ghost.md", "the ferry harbour ghost", listed=False)
    answer = await world.search(max_results=50)
    assert not any("sank" in result.snippet or "ghost" in result.snippet for result in answer.results)


async def test_more_is_asked_for_while_unlisted_chunks_crowd_out_listed_ones(world: World) -> None:
    for number in range(150):
        await world.put(f"old-{number}.md", f"ferry harbour ferry harbour {number}", listed=False)
    answer = await world.search(max_results=50)
    assert {result.path for result in answer.results} == {"a.md", "b.md"}
    assert world.texts.limits == [60, 240]


async def hostile(world: World) -> None:
    """Put a thousand better hits that a query of 2026 may not see: their dates are in the outlines alone."""
    for number in range(1000):
        await world.put(f"old-{number}.md", f"ferry harbour ferry harbour {number}", date="2025-05-05")
    for number in range(10):
        await world.put(f"new-{number}.md", f"the harbour {number}", date="2026-05-05")
    world.texts.limits.clear()


@pytest.mark.parametrize("mode", Mode)
async def test_ten_results_are_ten_where_ten_exist(world: World, mode: Mode) -> None:
    await hostile(world)
    answer = await world.search(max_results=10, since="2026-01-01", mode=mode)
    assert {result.path for result in answer.results} == {f"new-{number}.md" for number in range(10)}
    assert answer.degraded == ()


async def test_ten_results_are_ten_under_the_old_states_of_one_file(world: World) -> None:
    for sequence in range(1, 1000):
        await world.put("log.md", f"ferry harbour ferry harbour {sequence}", listed=False, sequence=sequence)
    await world.put("log.md", *(f"the harbour {number}" for number in range(10)), sequence=1000)
    found = (await world.search(max_results=12, mode=Mode.TEXT)).results
    assert [result.path for result in found].count("log.md") == 10


async def test_where_too_many_are_visible_a_search_that_may_miss_some_says_so(world: World) -> None:
    await hostile(world)
    world.service = replace(world.service, settings=SearchSettings(max_listed=5, max_depth=240))
    answer = await world.search(max_results=10, since="2026-01-01", mode=Mode.TEXT)
    assert only(answer) == (Stage.TEXT, "CUT_SHORT", "the visible ones among the best 240 candidates")


async def test_a_deleted_file_is_not_shown(world: World) -> None:
    outline = await world.manifest.outline(FileKey(SCOPE, "b.md"))
    assert outline is not None
    await world.manifest.commit(replace(outline, revision=Revision(1, 9), chunks=(), deleted=True))
    assert {result.path for result in (await world.search()).results} == {"a.md"}


async def test_flags_come_from_the_outline_and_not_from_the_stores(world: World) -> None:
    await world.put("c.md", "the ferry of the harbour is secret", private=True)
    outline = await world.manifest.outline(FileKey(SCOPE, "b.md"))
    assert outline is not None
    await world.manifest.commit(replace(outline, private=True))
    assert {result.path for result in (await world.search()).results} == {"a.md", "b.md", "c.md"}
    for chat in (Chat.GROUP, Chat.CHANNEL):
        assert {result.path for result in (await world.search(chat=chat)).results} == {"a.md"}


async def test_dates_come_from_the_outline(world: World) -> None:
    await world.put("old.md", "the old ferry harbour", date="2025-01-31")
    await world.put("new.md", "the new ferry harbour", date="2026-02-01")
    paths = {result.path for result in (await world.search(since="2026-01-01", until="2026-02-01")).results}
    assert paths == {"new.md"}


async def test_a_wait_for_a_revision_ends_when_it_is_committed(world: World) -> None:
    wanted = Freshness("a.md", Revision(1, 7), wait=5.0)
    search = asyncio.create_task(world.search(freshness=wanted, timeout=20.0))
    await asyncio.sleep(0)
    await world.put("a.md", "the ferry of today leaves the harbour", sequence=7)
    answer = await search
    assert any("of today" in result.snippet for result in answer.results)


async def test_a_wait_for_a_revision_that_never_comes_ends_in_time(world: World) -> None:
    answer = await world.search(freshness=Freshness("a.md", Revision(9, 9), wait=0.05))
    assert answer.results
    assert answer.stale
    assert not (await world.search()).stale


async def test_terms_are_searched_as_text(world: World) -> None:
    answer = await world.search('harbour" OR * AND (path:x) [1 TO 2] \\ ferry~', mode=Mode.TEXT)
    assert {result.path for result in answer.results} == {"a.md", "b.md"}
    assert (await text_hits(world.service.texts, [QueryTerm("*")], Filter(SCOPE), 10)) == []


async def test_of_a_query_longer_than_the_window_the_beginning_is_embedded(world: World) -> None:
    text = "ferry harbour " * 300
    for mode in (Mode.HYBRID, Mode.VECTOR):
        answer = await world.search(text, mode=mode)
        assert answer.mode is mode
        assert {result.path for result in answer.results} == {"a.md", "b.md"}
        # FakeTokenizer: 512 tokens are 4 of the prompt and 508 of four characters, the last one up to its end.
        assert only(answer) == (Stage.EMBED, "CUT_SHORT", "the vector leg on its first 2035 characters")
    assert set(world.embedder.embedded) == {text[:2035]}
    assert (await world.search(text, mode=Mode.TEXT)).degraded == ()
    assert (await world.search(text[:2035])).degraded == ()


async def test_near_duplicates_move_down_where_diversity_is_asked_for(world: World) -> None:
    await world.put("c.md", "the ferry leaves the harbour at noon", "the ferry leaves the harbour at noon today")
    plain = await world.search()
    diverse = await world.search(mmr_lambda=0.3)
    assert Stage.MMR in diverse.timings
    assert Stage.MMR not in plain.timings
    assert {result.snippet: result.score for result in diverse.results} == {
        result.snippet: result.score for result in plain.results
    }
    assert diverse.results[0] == plain.results[0]
    assert diverse.results != plain.results
    assert (await world.search(mmr_lambda=0.3, max_results=3)).results == diverse.results[:3]
    assert (await world.search(mmr_lambda=1.0)).results == plain.results


async def test_what_a_query_leaves_open_its_workspace_decides(world: World) -> None:
    await world.put("c.md", "the ferry leaves the harbour at noon", evergreen=False, date="2020-01-01")
    plain = (await world.search()).results
    ranking = Ranking(mmr_lambda=0.3, decay_half_life_days=30)
    settings = SearchSettings(workspaces={str(SCOPE): ranking})
    world.service = replace(world.service, settings=settings)
    answer = await world.search()
    assert {Stage.MMR, Stage.DECAY} <= set(answer.timings)
    assert [result.score for result in answer.results if result.path == "c.md"] == [pytest.approx(0.0, abs=1e-9)]
    assert (await world.search(mmr_lambda=1.0, decay_half_life_days=0.0)).results == plain


async def test_withheld_results_take_no_place(world: World) -> None:
    """What was made private while the legs ran is read afresh, before results are cut to the number asked for."""
    first = (await world.search(chat=Chat.GROUP, max_results=2)).results[0].path
    stale = await world.manifest.view(SCOPE)
    outline = await world.manifest.outline(FileKey(SCOPE, first))
    assert outline is not None
    await world.manifest.commit(replace(outline, private=True))
    views = iter([stale, await world.manifest.view(SCOPE)])
    world.manifest.before_view = lambda: next(views)  # what a commit between the two reads does
    (result,) = (await world.search(chat=Chat.GROUP, max_results=1)).results
    assert result.path != first


async def test_sub_queries_raise_what_they_find_and_lower_nothing(world: World) -> None:
    for number in range(70):
        await world.put(f"other-{number}.md", f"tram {number}")
    await world.put("d.md", "the airship moors at the pylon")
    plain = {result.path: result.score for result in (await world.search("zebra", max_results=50)).results}
    typed = {
        TypedKind.LEX: "airship pylon",
        TypedKind.VEC: "the airship moors at the pylon",  # FakeEmbedder: texts are alike where they are equal
        TypedKind.HYDE: "the airship moors at the pylon",
    }
    for kind, text in typed.items():
        answer = await world.search("zebra", max_results=50, typed=(TypedQuery(kind, text),), explain=True)
        (found,) = (result for result in answer.results if result.path == "d.md")
        assert found.score > max(plain.get("d.md", 0.0), 0.33), kind
        assert any(step.startswith("sub-queries: ") for step in found.explanation)
        assert all(result.score >= plain.get(result.path, 0.0) for result in answer.results)
        assert answer.degraded == ()


async def test_sub_queries_of_a_leg_that_the_mode_leaves_out_are_not_run(world: World) -> None:
    typed = (TypedQuery(TypedKind.VEC, "a tram"), TypedQuery(TypedKind.HYDE, "a bus"))
    await world.search(typed=typed, mode=Mode.TEXT)
    assert world.embedder.calls == 0


async def test_sub_queries_fail_alone(world: World) -> None:
    world.embedder.fault = lambda texts: UnavailableError("down") if "a tram" in texts[0] else None
    typed = tuple(TypedQuery(TypedKind.VEC, f"a tram {number}") for number in range(3))
    answer = await world.search(typed=typed)
    assert only(answer) == (Stage.EMBED, "UNAVAILABLE", "the search without this sub-query")
    assert (answer.mode, answer.results) == (Mode.HYBRID, (await world.search()).results)


@pytest.mark.parametrize("late", [False, True])
async def test_without_the_manifest_the_last_outlines_are_used(world: World, late: bool) -> None:
    before = await world.search()
    if late:
        world.manifest.delay = 60.0
    else:
        world.manifest.error = UnavailableError("NATS is down")
    answer = await world.search(timeout=1.0)
    assert (answer.results, answer.stale) == (before.results, True)
    reason = "DEADLINE_EXCEEDED" if late else "UNAVAILABLE"
    assert only(answer) == (Stage.FUSE, reason, "the outlines as they were last read, without what came later")
    world.manifest.delay, world.manifest.error = 0.0, None
    answer = await world.search()
    assert (answer.stale, answer.degraded) == (False, ())


async def test_without_outlines_of_any_time_the_search_is_unavailable(world: World) -> None:
    world.manifest.error = UnavailableError("NATS is down")
    with pytest.raises(UnavailableError, match="outlines of this workspace"):
        await world.search()


async def test_what_others_may_see_is_read_afresh_or_withheld(world: World) -> None:
    assert (await world.search(chat=Chat.GROUP)).results
    world.manifest.error = UnavailableError("NATS is down")
    for chat in (Chat.GROUP, Chat.CHANNEL):
        answer = await world.search(chat=chat)
        assert answer.results == ()
        assert "nothing: what may be shown to others can't be told" in [entry.instead for entry in answer.degraded]
    assert (await world.search()).results


async def test_a_wait_for_a_revision_ends_where_the_manifest_fails(world: World) -> None:
    await world.search()
    world.manifest.error = UnavailableError("NATS is down")
    answer = await world.search(freshness=Freshness("a.md", Revision(9, 9), wait=5.0))
    assert answer.results
    assert answer.stale


async def test_what_fails_again_and_again_is_not_asked_for_a_while(world: World) -> None:
    def degraded() -> list[float]:
        labels = ({"stage": "text", "reason": reason} for reason in ("UNAVAILABLE", "CIRCUIT_OPEN"))
        return [REGISTRY.get_sample_value("memoryd_search_degraded_total", each) or 0.0 for each in labels]

    before = degraded()
    world.texts.error = UnavailableError("the text store is down")
    reasons = [(await world.search()).degraded[0].reason for _ in range(8)]
    assert reasons == ["UNAVAILABLE"] * 5 + ["CIRCUIT_OPEN"] * 3
    assert len(world.texts.limits) == 5
    assert [now - then for now, then in zip(degraded(), before, strict=True)] == [5, 3]
    assert REGISTRY.get_sample_value("memoryd_breaker_open", {"dependency": "texts"}) == 1


async def test_a_deadline_too_short_for_anyone_is_nobodys_failure(world: World) -> None:
    world.vectors.delay = 60.0
    for _ in range(8):
        degraded = (await world.search(timeout=0.2)).degraded  # on a busy machine other stages are late, too
        assert (Stage.VECTOR, "DEADLINE_EXCEEDED") in [(entry.stage, entry.reason) for entry in degraded]
    world.vectors.delay = 0.0
    assert (await world.search()).degraded == ()


@pytest.mark.parametrize("made_up", [np.zeros((1, 3)), np.full((1, DIMENSIONS), np.nan), np.zeros((0, DIMENSIONS))])
async def test_an_embedder_that_answers_garbage_is_as_good_as_none(world: World, made_up: NDArray[np.float32]) -> None:
    async def embed(*_: object, **__: object) -> Embeddings:
        return Embeddings(made_up, 1)

    world.embedder.embed = embed  # type: ignore[method-assign]  # garbage
    answer = await world.search()
    assert (answer.mode, only(answer)) == (Mode.TEXT, (Stage.EMBED, "UNAVAILABLE", "the text leg alone"))


async def test_scores_that_are_no_numbers_are_no_answer(world: World) -> None:
    world.vectors.score = math.nan
    answer = await world.search()
    assert (answer.mode, only(answer)[:2]) == (Mode.TEXT, (Stage.VECTOR, "UNAVAILABLE"))


async def test_what_holds_quoted_words_word_for_word_is_raised(world: World) -> None:
    await world.put("c.md", "the closed harbour", "the square harbour closed is")
    plain = {result.snippet: result.score for result in (await world.search("harbour is closed")).results}
    quoted = await world.search('"harbour is closed"', explain=True)
    assert quoted.results[0].snippet == "the harbour is closed"
    assert quoted.results[0].score > plain["the harbour is closed"]
    assert {result.snippet for result in quoted.results} == set(plain)
    assert [any("quoted words" in step for step in result.explanation) for result in quoted.results].count(True) == 1


@pytest.mark.parametrize("query", ["the tram on March 5", "三月五号", "tram of 2026-03-05"])
async def test_notes_of_a_day_that_is_named_are_looked_at_and_raised(world: World, query: str) -> None:
    for number in range(100):
        await world.put(f"memory/tram-{number}.md", f"tram {number}")
    await world.put("memory/2026-03-05-standup.md", "nothing of it", evergreen=False, date="2026-03-05")
    for mode in (Mode.HYBRID, Mode.VECTOR):
        answer = await world.search(query, max_results=50, mode=mode, explain=True)
        raised = [result.path for result in answer.results if any("day named" in step for step in result.explanation)]
        assert raised == ["memory/2026-03-05-standup.md"]
    assert not any("day named" in step for step in (await world.search("tram", explain=True)).results[0].explanation)


async def test_words_beyond_those_that_are_looked_up_are_reported(world: World) -> None:
    query = "ferry " + " ".join(f"zz{number}" for number in range(70))
    answer = await world.search(query, mode=Mode.TEXT)
    assert only(answer) == (Stage.TEXT, "CUT_SHORT", "the text leg on its first 64 words")
    assert answer.results


async def test_the_text_leg_alone_looks_for_words_of_its_best_hits_too(world: World) -> None:
    await world.put("c.md", "the vessel Halcyon has a ferry licence", "Halcyon needs paint")
    found = {result.snippet for result in (await world.search("ferry", mode=Mode.TEXT)).results}
    assert "Halcyon needs paint" in found
    assert (await world.search("quokka", mode=Mode.TEXT)).results == ()
    world.embedder.fault = lambda _: UnavailableError("down")
    assert "Halcyon needs paint" in {result.snippet for result in (await world.search("ferry")).results}


async def test_where_words_of_hits_cannot_be_looked_for_the_querys_own_do(world: World) -> None:
    async def tokenizer() -> FakeTokenizer:
        raise UnavailableError("down")

    world.embedder.tokenizer = tokenizer  # type: ignore[method-assign]  # as where it never was loaded
    answer = await world.search("ferry", mode=Mode.TEXT)
    assert only(answer) == (Stage.TEXT, "UNAVAILABLE", "the query's own words alone")
    assert {result.path for result in answer.results} == {"a.md"}
