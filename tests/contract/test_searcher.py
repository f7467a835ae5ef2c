"""What every way to the search service does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from memoryd.domain.files import Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.queries import (
    Chat,
    CitationMode,
    Degraded,
    Freshness,
    Mode,
    Rerank,
    SearchAnswer,
    SearchQuery,
    Stage,
    TypedKind,
    TypedQuery,
)
from memoryd.errors import (
    DataError,
    DeadlineExceededError,
    InvalidInputError,
    MemorydError,
    ModelError,
    PreconditionFailedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from memoryd.ports import Searcher
from tests.contract.registry import SEARCHERS
from tests.support.gateway import ANSWER, RESULT, SCOPE, FakeSearcher

DEGRADED = Degraded(Stage.VECTOR, "UNAVAILABLE", "Qdrant does not answer", "the text leg alone")


@pytest.fixture
def behind() -> FakeSearcher:
    return FakeSearcher()


@pytest.fixture(params=sorted(SEARCHERS))
async def searcher(request: pytest.FixtureRequest, behind: FakeSearcher) -> AsyncIterator[Searcher]:
    async with SEARCHERS[request.param](behind) as reached:
        yield reached


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ANSWER, id="hybrid"),
        pytest.param(
            replace(ANSWER, mode=Mode.TEXT, model=None, degraded=(DEGRADED,), pending=4, citations=False), id="degraded"
        ),
        pytest.param(replace(ANSWER, results=(), timings={}, revision=""), id="nothing found"),
        pytest.param(replace(ANSWER, set_aside=Problem("BINARY", "no text")), id="set aside"),
        pytest.param(
            replace(
                ANSWER,
                results=(
                    replace(RESULT, vector_score=None, text_score=0.0, rerank_score=1.0, source=Source.SESSIONS),
                    replace(RESULT, snippet="会议 🙂\n", citation="", heading="", explanation=(), path="b/日.md"),
                ),
            ),
            id="two results",
        ),
    ],
)
async def test_the_answer_arrives_whole(searcher: Searcher, behind: FakeSearcher, answer: SearchAnswer) -> None:
    behind.answer = answer
    assert await searcher.search(SCOPE, SearchQuery("boiler"), timeout=5.0) == answer


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(SearchQuery("boiler"), id="defaults"),
        pytest.param(
            SearchQuery(
                text="Wo steht der Kessel?",
                max_results=50,
                min_score=0.0,
                sources=frozenset({Source.SESSIONS}),
                path_prefix="memory/",
                since="2026-01-01",
                until="2026-12-31",
                mode=Mode.VECTOR,
                rerank=Rerank.ON,
                mmr_lambda=0.0,
                decay_half_life_days=30.0,
                freshness=Freshness("a.md", Revision(2, 31), 0.25),
                explain=True,
                chat=Chat.GROUP,
                typed=(TypedQuery(TypedKind.LEX, "kessel"), TypedQuery(TypedKind.HYDE, "Er steht im Keller.")),
                citations=CitationMode.OFF,
                tags=("plan", "日"),
                glob="memory/**/*.md",
            ),
            id="all fields",
        ),
    ],
)
async def test_scope_and_query_arrive_whole(searcher: Searcher, behind: FakeSearcher, query: SearchQuery) -> None:
    scope = Scope("rival", "side")
    await searcher.search(scope, query, timeout=5.0)
    assert [asked[:2] for asked in behind.asked] == [(scope, query)]


async def test_the_search_has_no_more_time_than_its_caller(searcher: Searcher, behind: FakeSearcher) -> None:
    await searcher.search(SCOPE, SearchQuery("boiler"), timeout=5.0)
    assert 0 < behind.asked[0][2] <= 5.0


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("path_prefix: wrong", field="path_prefix"),
        PreconditionFailedError("another model", reason="OTHER_MODEL", fingerprint="f00d"),
        ResourceExhaustedError("full: try again later"),
        UnavailableError("no search leg answered"),
        DeadlineExceededError("no time"),
        UnimplementedError("typed is not served by this version; leave it out", field="typed"),
        ModelError("the model is broken"),
        DataError("the index is damaged"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_errors_arrive_as_they_were_raised(searcher: Searcher, behind: FakeSearcher, error: MemorydError) -> None:
    behind.error = error
    with pytest.raises(MemorydError) as caught:
        await searcher.search(SCOPE, SearchQuery("boiler"), timeout=5.0)
    assert type(caught.value) is type(error)
    assert (str(caught.value), caught.value.reason) == (str(error), error.reason)
    assert caught.value.details.items() >= error.details.items()


async def test_a_caller_that_goes_away_ends_the_search() -> None:
    for reach in SEARCHERS.values():
        hanging = Hanging()
        async with reach(hanging) as searcher:
            call = asyncio.ensure_future(searcher.search(SCOPE, SearchQuery("boiler"), timeout=60.0))
            async with asyncio.timeout(30):
                await hanging.began.wait()
                call.cancel()
                await hanging.cancelled.wait()
            assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)


class Hanging:
    """Searches until it is cancelled."""

    def __init__(self) -> None:
        self.began, self.cancelled = asyncio.Event(), asyncio.Event()

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError
