"""The rerank stage: token sketches, then a cross-encoder where one is configured; without them the fused order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from memoryd.breaker import Breaker
from memoryd.domain.calibration import SKETCH_DEPTH
from memoryd.domain.names import Scope
from memoryd.domain.queries import ModelInfo, Rerank, SearchQuery, Stage
from memoryd.domain.rerank import Sketched, by_cross_encoder, by_sketches
from memoryd.domain.scores import Scored
from memoryd.domain.scoring import Weights
from memoryd.domain.sketches import QueryTokens, match_sketches
from memoryd.errors import UnavailableError
from memoryd.ports import Embedder, VectorStore
from services.search.chunks import kept_sketches
from services.search.settings import SearchSettings
from services.search.stages import BEFORE, Stages

NO_CROSS_ENCODER = "NO_CROSS_ENCODER"
"""Reason of a rerank stage that was to run a cross-encoder, and there is none."""
SHORT_OF_TIME = "SHORT_OF_TIME"
"""Reason of a rerank stage that left its cross-encoder out."""

# About four bytes of UTF-8 make a token of a multilingual vocabulary, in English as in Chinese.
_BYTES_PER_TOKEN = 4


class Reranker:
    """Both ways to rerank; each can fail alone."""

    def __init__(self, embedder: Embedder, vectors: VectorStore, settings: SearchSettings) -> None:
        """Begin with both trusted."""
        self._embedder, self._vectors, self._settings = embedder, vectors, settings
        self.sketches = kept_sketches(settings.sketch_cache_bytes, settings.chunk_cache_seconds)
        self._reading, self._crossing = (
            Breaker(name, settings.breaker_failures, settings.breaker_pause) for name in ("sketches", "reranker")
        )

    async def sketched(
        self, scope: Scope, scored: Sequence[Scored], tokens: QueryTokens | None, weights: Weights, stages: Stages
    ) -> Sketched | None:
        """Order by token sketches; None where the fused order stays: no candidates, no tokens, or a failure."""
        if tokens is None or not len(tokens.vectors) or not scored:
            return None

        async def work(_: float) -> Sketched:
            paths = {item.candidate.chunk.id: item.candidate.chunk.key.path for item in scored[:SKETCH_DEPTH]}
            read = partial(self._vectors.sketches, scope)
            found = await self.sketches.of(scope, list(paths), read, lambda name, _: paths[name])
            return await asyncio.to_thread(_match, scored, tokens, found, weights)

        return await stages.run(
            Stage.RERANK,
            work,
            share=self._settings.rerank_share,
            instead=BEFORE,
            breaker=self._reading,
        )

    async def crossed(
        self, query: SearchQuery, model: ModelInfo | None, scored: list[Scored], stages: Stages
    ) -> list[Scored]:
        """Refine the beginning of a calibrated order by a cross-encoder, where the query and the time allow it."""
        if query.rerank is Rerank.OFF or not scored:
            return scored
        if model is None or not model.reranks:
            if query.rerank is Rerank.ON:
                what = "the model service does not answer" if model is None else "no cross-encoder is configured"
                stages.note(Stage.RERANK, NO_CROSS_ENCODER, what, BEFORE)
            return scored
        needed = self._settings.cross_encoder_seconds
        if query.rerank is Rerank.AUTO and stages.left * self._settings.rerank_share < needed:
            detail = f"a cross-encoder is given {needed:g} s, and {stages.left:.3g} s are left of the call"
            stages.note(Stage.RERANK, SHORT_OF_TIME, detail, BEFORE)
            return scored
        chosen = self._chosen(query.text, scored)

        async def work(seconds: float) -> list[Scored]:
            texts = [item.candidate.chunk.embedding_input for item in chosen]
            scores = await self._embedder.rerank(query.text, texts, timeout=seconds)
            if len(scores) != len(texts) or np.isinf(scores).any() or np.isnan(scores).all():
                raise UnavailableError("the cross-encoder answered with something that is not a score a text")
            late = np.flatnonzero(np.isnan(scores))  # what it had no time for
            seen = int(late[0]) if len(late) else len(scores)
            if seen < len(scores):
                detail = f"the cross-encoder scored {seen} of {len(scores)} candidates in time"
                stages.note(Stage.RERANK, SHORT_OF_TIME, detail, "the order before it for the others")
            names = [item.candidate.chunk.id for item in chosen]
            of_chunks = dict(zip(names[:seen], scores, strict=False))
            return by_cross_encoder(scored, of_chunks, query.min_score) if seen else scored

        share = self._settings.rerank_share
        if query.rerank is Rerank.AUTO:
            share = min(share, needed / stages.left)
        refined = await stages.run(Stage.RERANK, work, share=share, instead=BEFORE, breaker=self._crossing)
        return scored if refined is None else refined

    def _chosen(self, query: str, scored: Sequence[Scored]) -> list[Scored]:
        """Take the first candidates, as many as the bounds in number and in tokens allow, at least one."""
        room = self._settings.cross_encoder_tokens
        for count, item in enumerate(scored[: self._settings.cross_encoder_depth]):
            room -= len((query + item.candidate.chunk.embedding_input).encode()) // _BYTES_PER_TOKEN
            if room < 0:
                return list(scored[: max(count, 1)])
        return list(scored[: self._settings.cross_encoder_depth])


def _match(scored: Sequence[Scored], tokens: QueryTokens, found: Mapping[str, bytes], weights: Weights) -> Sketched:
    sketches = [found.get(item.candidate.chunk.id, b"") for item in scored]
    paths = [item.candidate.chunk.key.path for item in scored]
    return by_sketches(scored, match_sketches(tokens, sketches, paths), weights)
