"""The use case of the search service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memoryd.domain.calibration import Evidence
from memoryd.domain.files import Problem
from memoryd.domain.mmr import diversify
from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from memoryd.domain.queries import (
    MAX_RESULTS,
    Chat,
    CitationMode,
    ModelInfo,
    Rerank,
    SearchAnswer,
    SearchQuery,
    Stage,
)
from memoryd.domain.rerank import best_coverage, calibrated
from memoryd.domain.scores import Scored, decay, rank
from memoryd.domain.signals import raise_days, raise_phrases
from memoryd.domain.subqueries import blend
from memoryd.domain.text import analyze_query, has_subject, nats_per_byte, quoted_phrases
from memoryd.errors import UnavailableError
from memoryd.ports import Embedder, FileLog, Manifest, TextStore, VectorStore
from services.search.admission import Admission
from services.search.answers import Answers
from services.search.ask import Ask
from services.search.candidates import gather, word_weights
from services.search.days import notes_of_days
from services.search.embeddings import CachingEmbedder
from services.search.legs import Found, Legs
from services.search.outlines import Outlines
from services.search.query_embedding import Begun
from services.search.rerank import Reranker
from services.search.results import once, result
from services.search.scoring import Scorings
from services.search.settings import SearchSettings
from services.search.stages import Stages
from services.search.subqueries import SubQuery, found_by, run_subqueries
from services.search.visibility import Visible, index_filter


@dataclass(slots=True)
class SearchService:
    """Searches one generation. Implements `memoryd.ports.Searcher`."""

    embedder: Embedder
    vectors: VectorStore
    texts: TextStore
    manifest: Manifest
    log: FileLog
    consumer: str
    settings: SearchSettings
    _outlines: Outlines = field(init=False)
    _legs: Legs = field(init=False)
    _reranker: Reranker = field(init=False)
    answers: Answers = field(init=False)
    _admission: Admission = field(init=False)
    _scorings: Scorings = field(init=False, default_factory=Scorings)

    def __post_init__(self) -> None:
        """Begin with all dependencies trusted, and nothing kept."""
        self._outlines = Outlines(self.manifest, self.log, self.consumer, self.settings)
        settings = self.settings
        embedder = CachingEmbedder(self.embedder, settings.vector_cache_bytes)
        self._legs = Legs(embedder, self.vectors, self.texts, settings)
        self.answers = Answers(settings.answer_cache_bytes, settings.answer_cache_seconds)
        self._reranker = Reranker(self.embedder, self.vectors, settings)
        self._admission = Admission(settings.at_once)

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        """Run a search within `timeout` seconds.

        The outlines are fixed before the legs run, and candidates are filtered by those outlines: read in the other
        order, a commit in between could leave neither state of a file complete. Embedding the query depends on neither.
        """
        query = self.settings.applied(scope, query)
        stages = Stages(timeout, self.settings.breaker_patience)
        wanted = query.freshness
        ask = Ask(query.text, query.mode, (), sketches=query.rerank is not Rerank.OFF)  # words are for the text leg
        async with self._legs.begin(ask, scope, stages) as begun:
            behind = wanted is not None and not await self._outlines.reached(scope, wanted, stages)
            fixed = await self._outlines.fix(scope, stages)
            for kept in (self._legs.chunks, self._reranker.sketches):
                kept.prune(scope, fixed.view)

            async def make() -> SearchAnswer:
                async with self._admission.turn(stages.left / 2):
                    return await self._answer(scope, query, ask, begun, fixed.view, stages)

            if fixed.current:
                answer = await self.answers.get(scope, fixed.view, query, stages.left, make)
            else:  # what was purged meanwhile must not come from memory
                answer = await make()
        behind = behind or not fixed.current
        return replace(
            answer,
            pending=fixed.pending,
            behind=behind,
            set_aside=_set_aside(fixed.view, query),
            timings=answer.timings or stages.timings,
        )

    def forget(self, scope: Scope) -> None:
        """Drop what is kept in memory of a workspace's content at once, as a purge asks for."""
        self.answers.forget(scope)
        self._legs.chunks.forget(scope)
        self._reranker.sketches.forget(scope)

    async def _answer(
        self, scope: Scope, query: SearchQuery, ask: Ask, begun: Begun, view: WorkspaceView, stages: Stages
    ) -> SearchAnswer:
        """Run the legs and what comes after them."""
        visible = Visible(view, query)
        where = await index_filter(scope, visible)
        ask = replace(ask, words=analyze_query(query.text), notes=notes_of_days(query.text, view))
        # While the query is being embedded, which takes longer than this.
        weights = await word_weights(self.embedder, ask.words)
        async with asyncio.TaskGroup() as group:
            main = group.create_task(self._legs.run(ask, where, visible, stages, begun))
            sub = group.create_task(run_subqueries(self._legs, query, where, visible, stages))
        subqueries = sub.result()
        found = await self._legs.expand(ask, main.result(), where, visible, stages)
        found = replace(found, more=[*found.more, *found_by(subqueries)])
        if found.vector is None and found.text is None:
            raise UnavailableError(
                "no search leg answered: "
                + "; ".join(f"{d.stage}: {d.detail}" for d in stages.degraded)
                + ". Try again; `memoryd status` shows what is down."
            )
        scored = await self._score(scope, ask, weights, visible, found, stages)
        if subqueries:
            others = [await self._score_subquery(scope, each, visible, stages) for each in subqueries]
            scored = blend(scored, others)
        scored = await self._reranker.crossed(query, await self._model(), scored, stages)
        scored = raise_days(raise_phrases(scored, quoted_phrases(query.text)), ask.notes.days)
        scored = self._decayed(scored, query, stages)
        kept = [item for item in scored if item.score >= query.min_score]
        kept = once(await self._withhold(scope, kept, query, stages))
        kept = (await self._diverse(kept, query, stages))[: query.max_results]
        cited = query.citations is CitationMode.ON or (
            query.citations is CitationMode.AUTO and query.chat is Chat.DIRECT
        )
        asked = [*ask.words, *(word for each in subqueries for word in each.ask.words)]
        terms = {term for word in asked for term in word.terms}
        return SearchAnswer(
            results=tuple(result(item, terms, cited=cited, explain=query.explain) for item in kept),
            mode=found.mode,
            model=await self._model() if found.vector is not None else None,
            citations=cited,
            pending=0,
            degraded=tuple(stages.degraded),
            timings=stages.timings,
            revision=f"{view.sequence:x}",
        )

    async def _score_subquery(self, scope: Scope, subquery: SubQuery, visible: Visible, stages: Stages) -> list[Scored]:
        ask = replace(subquery.ask, words=subquery.ask.words or analyze_query(subquery.ask.text))
        weights = await word_weights(self.embedder, ask.words)
        return await self._score(scope, ask, weights, visible, subquery.found, stages)

    async def _score(
        self, scope: Scope, ask: Ask, weights: Sequence[float], visible: Visible, found: Found, stages: Stages
    ) -> list[Scored]:
        """Score what one query or sub-query found: calibrated, best first. `weights` are of the query's words."""
        began = time.monotonic()
        model = await self._model()
        scoring, words = self._scorings.of(model), ask.words
        candidates = await gather(scope, words, weights, visible, found, self.vectors, stages)
        scored = rank(candidates, unrelated=model.unrelated, related=model.related, weights=scoring.weights)
        stages.add(Stage.FUSE, time.monotonic() - began)
        sketched = await self._reranker.sketched(scope, scored, found.tokens, scoring.weights, stages)
        rare_match = sketched.rare_match if sketched else None
        evidence = Evidence(len(words), nats_per_byte(words, weights), best_coverage(scored), rare_match)
        return calibrated(sketched.scored if sketched else scored, evidence, scoring, subject=has_subject(words))

    def _decayed(self, scored: list[Scored], query: SearchQuery, stages: Stages) -> list[Scored]:
        if query.decay_half_life_days is None:
            return scored
        began = time.monotonic()
        today = time.strftime("%Y-%m-%d", time.gmtime())
        scored = decay(scored, query.decay_half_life_days, today, query.min_score)
        stages.add(Stage.DECAY, time.monotonic() - began)
        return scored

    async def _withhold(self, scope: Scope, scored: list[Scored], query: SearchQuery, stages: Stages) -> list[Scored]:
        """Read privacy flags afresh where others listen: a file made private a moment ago must not be shown.

        Before results are cut to the number asked for, so that what is withheld takes nobody's place.
        """
        if query.chat is Chat.DIRECT or not scored:
            return scored
        fresh = await self._outlines.again(scope, stages)
        if fresh is None:
            return []
        return [
            item
            for item in scored
            if (outline := fresh.outlines.get(item.candidate.chunk.key.path))
            and not outline.private
            and not outline.deleted
        ]

    async def _diverse(self, scored: list[Scored], query: SearchQuery, stages: Stages) -> list[Scored]:
        """Move near-duplicates down. Scores stay as they are, so nothing falls below `min_score`."""
        balance = query.mmr_lambda
        if balance is None:
            return scored

        async def work(_: float) -> list[Scored]:
            relevance = [item.score for item in scored]
            terms = [set(item.candidate.chunk.terms.split()) for item in scored]
            return [scored[place] for place in diversify(relevance, terms, balance, MAX_RESULTS)]

        return await stages.run(Stage.MMR, work, share=1.0, instead="the order by score") or scored

    async def _model(self) -> ModelInfo:
        return await self.embedder.info()


def _set_aside(view: WorkspaceView, query: SearchQuery) -> Problem | None:
    """Why the state that the query waited for is not indexed; None where it is, or is not known yet."""
    wanted = query.freshness
    outline = view.outlines.get(wanted.path) if wanted else None
    return outline.problem if wanted and outline and outline.revision >= wanted.at_least else None
