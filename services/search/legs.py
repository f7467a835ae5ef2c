"""The legs: two ways to find chunks, run side by side, each able to fail alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memoryd.breaker import Breaker
from memoryd.domain.names import Scope
from memoryd.domain.queries import MAX_RESULTS, Mode, Stage
from memoryd.domain.sketches import QueryTokens
from memoryd.domain.text import EXPANDING_HITS, expansion
from memoryd.errors import MemorydError, UnavailableError
from memoryd.ports import ChunkStore, Embedder, Filter, Hit, QueryTerm, TextStore, VectorStore
from services.search.ask import Ask
from services.search.chunks import kept_chunks, path_of_chunk
from services.search.query_embedding import Begun, QueryEmbedder
from services.search.settings import SearchSettings
from services.search.stages import CUT_SHORT, Stages
from services.search.visibility import Visible

_OF_DAYS = 20  # chunks
_SPREADS = 3  # further searches of a leg, at most, where long lines crowd out others
_Search = Callable[[Filter, int], Awaitable[Sequence[Hit]]]


@dataclass(frozen=True, slots=True)
class Found:
    """What the legs found.

    Attributes:
        vector: visible hits by cosine; None where the leg did not run or failed.
        text: visible hits by BM25; None likewise.
        embedding: the query's vector, shape (dimensions,); None where there is none.
        tokens: the query's tokens; None where they are not wanted, or the model gives none.
        more: visible chunks that neither leg found, but a sub-query did, or that are of a day that was named: they are
            compared with the query as well.
        cosines: of chunks that the vector leg was told of, by id; None where the store does not hold one.
    """

    vector: list[Hit] | None
    text: list[Hit] | None
    embedding: NDArray[np.float32] | None
    tokens: QueryTokens | None = None
    more: Sequence[Hit] = ()
    cosines: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def mode(self) -> Mode:
        """The legs that ran."""
        if self.vector is None:
            return Mode.TEXT
        return Mode.VECTOR if self.text is None else Mode.HYBRID


class Legs:
    """Both legs on their stores."""

    def __init__(self, embedder: Embedder, vectors: VectorStore, texts: TextStore, settings: SearchSettings) -> None:
        """Begin with all of them trusted."""
        self._embedder, self._vectors, self._texts, self._settings = embedder, vectors, texts, settings
        self._queries = QueryEmbedder(embedder, settings)
        self.chunks = kept_chunks(settings.chunk_cache_bytes, settings.chunk_cache_seconds)
        self._comparing, self._finding = (
            Breaker(name, settings.breaker_failures, settings.breaker_pause) for name in ("vectors", "texts")
        )

    def begin(self, ask: Ask, scope: Scope, stages: Stages) -> AbstractAsyncContextManager[Begun]:
        """Begin to embed a query, before it is known where it may look; see `QueryEmbedder.begin`."""
        return self._queries.begin(ask, scope, stages)

    async def run(self, ask: Ask, where: Filter, visible: Visible, stages: Stages, begun: Begun | None = None) -> Found:
        """Run the legs that are asked for; `begun` is the query's embedding, where that was begun before."""
        named: list[str] = []

        async def text_leg() -> list[Hit] | None:
            hits = await self._text(ask, where, visible, stages)
            named.extend(hit.chunk.id for hit in hits or ())
            return hits

        async with asyncio.TaskGroup() as group:
            vector = group.create_task(self._vector(ask, where, visible, stages, named, begun))
            text = group.create_task(text_leg())
        return replace(vector.result(), text=text.result())

    async def _vector(
        self,
        ask: Ask,
        where: Filter,
        visible: Visible,
        stages: Stages,
        named: Sequence[str],
        begun: Begun | None,
    ) -> Found:
        """Run the vector leg; `named`: the chunks that the text leg has found by the time the query is embedded."""
        if ask.mode is Mode.TEXT:
            return Found(None, None, None)
        instead = ask.without(Mode.VECTOR)

        if begun is None:
            embedded = await self._queries.embed(ask, where.scope, stages)
        else:
            embedded = await self._queries.finish(begun, ask, where.scope, stages)
        if embedded is None:
            return Found(None, None, None)
        embedding, tokens = embedded.vector, embedded.tokens

        cosines: dict[str, float | None] = {}

        async def search(where: Filter, limit: int) -> Sequence[Hit]:
            # A copy: the text leg may answer meanwhile, and what was not asked for would seem not to be there.
            near = await self._vectors.nearest(embedding, where, limit, list(named))
            cosines.update(near.cosines)
            return await self._hits(self._vectors, where.scope, near.hits)

        async def leg(_: float) -> tuple[list[Hit], list[Hit]]:
            hits = await self._enough(search, where, visible, partial(_crowded, stages, Stage.VECTOR))
            paths = ask.notes.paths if where.paths is None else ask.notes.paths & where.paths
            more = await search(replace(where, paths=paths), _OF_DAYS) if paths else ()
            return hits, visible.filter(more)

        share = self._settings.leg_share
        done = await stages.run(Stage.VECTOR, leg, share=share, instead=instead, breaker=self._comparing)
        if done is None:  # token sketches are in the store that has just failed
            return Found(None, None, embedding)
        hits, more = done
        return Found(hits, None, embedding, tokens, more, cosines)

    async def _text(self, ask: Ask, where: Filter, visible: Visible, stages: Stages) -> list[Hit] | None:
        if ask.mode is Mode.VECTOR:
            return None
        instead = ask.without(Mode.TEXT)
        terms = ask.terms
        if ask.surplus:
            of_it = f"the text leg on its first {len(ask.words)} words"
            stages.note(Stage.TEXT, CUT_SHORT, f"the query has {ask.surplus} more words than are looked up", of_it)

        async def leg(_: float) -> list[Hit]:
            search = partial(self._find, terms)
            return await self._enough(search, where, visible, partial(_crowded, stages, Stage.TEXT))

        share = self._settings.leg_share
        return await stages.run(Stage.TEXT, leg, share=share, instead=instead, breaker=self._finding)

    async def _find(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[Hit]:
        return await self._hits(self._texts, where.scope, await self._texts.search(terms, where, limit))

    async def _hits(self, store: ChunkStore, scope: Scope, found: Sequence[tuple[str, float]]) -> list[Hit]:
        """Read what a store has found, as far as it is not kept; what is gone by then is left out."""
        chunks = await self.chunks.of(scope, [name for name, _ in found], partial(store.chunks, scope), path_of_chunk)
        return [Hit(chunks[name], score) for name, score in found if name in chunks]

    async def expand(self, ask: Ask, found: Found, where: Filter, visible: Visible, stages: Stages) -> Found:
        """Where the text leg is all there is, let it look for words of its best hits, too."""
        hits = found.text
        if found.vector is not None or not hits:
            return found
        own, instead = ask.terms, "the query's own words alone"
        try:
            tokenizer = await self._embedder.tokenizer()
        except MemorydError as error:
            stages.note(Stage.TEXT, error.reason, "how rare words are can't be told without the tokenizer", instead)
            return found

        async def leg(_: float) -> list[Hit]:
            words = [(hit.score, hit.chunk.terms.split(" ")) for hit in hits[:EXPANDING_HITS]]
            known = {term.term for term in own}
            more = await asyncio.to_thread(expansion, words, known, tokenizer.weights)
            search = partial(self._find, [*own, *(QueryTerm(*each) for each in more.items())])
            return await self._enough(search, where, visible, partial(_crowded, stages, Stage.TEXT))

        share = self._settings.leg_share
        again = await stages.run(Stage.TEXT, leg, share=share, instead=instead, breaker=self._finding)
        return found if again is None else replace(found, text=again)

    async def _enough(self, search: _Search, where: Filter, visible: Visible, note: Callable[[str], None]) -> list[Hit]:
        """Search until there are enough visible hits, or no more.

        Chunks that the outlines don't list, or not for this query, may crowd out those that they do. Then more is asked
        for, and if that is not enough the store is told which chunks are visible.
        """
        depth = limit = self._settings.depth
        while True:
            hits = await search(where, limit)
            if not all(math.isfinite(hit.score) for hit in hits):
                raise UnavailableError("the store answered with scores that are no numbers")
            kept = visible.filter(hits)
            if len(hits) < limit and len(kept) <= depth:
                return kept
            if len(hits) < limit or len(kept) >= MAX_RESULTS:
                return await self._spread(search, where, visible, kept[:depth])
            if limit > depth and where.ids is None:
                ids = await asyncio.to_thread(lambda: visible.ids)
                if len(ids) <= self._settings.max_listed:
                    where, limit = replace(where, ids=ids), depth
                    continue
            if limit >= self._settings.max_depth:
                note(f"the visible ones among the best {limit} candidates")
                return kept[:depth]
            limit *= 4

    async def _spread(self, search: _Search, where: Filter, visible: Visible, kept: list[Hit]) -> list[Hit]:
        """Where parts of a few long lines are all that was found, look for chunks of other lines, too.

        A line is one result, however many parts it was cut into.
        """
        depth = self._settings.depth
        for _ in range(_SPREADS):
            places = visible.places(kept)
            if len(places) >= MAX_RESULTS:
                break
            ids = await asyncio.to_thread(visible.elsewhere, places)
            if not 0 < len(ids) <= self._settings.max_listed:
                break
            hits = await search(replace(where, ids=ids), depth)
            kept += visible.filter(hits)
            if len(hits) < depth:
                break
        return kept


def _crowded(stages: Stages, stage: Stage, instead: str) -> None:
    stages.note(stage, CUT_SHORT, "too many candidates are not visible to this query", instead)
