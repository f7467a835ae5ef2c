"""The query's vector and tokens: asked for first, since nothing else of a search takes as long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryd.breaker import Breaker
from memoryd.domain.names import Scope
from memoryd.domain.queries import Mode, Stage
from memoryd.domain.sketches import QueryTokens
from memoryd.errors import UnavailableError
from memoryd.ports import Embedder, Embeddings, Lane
from services.search.ask import Ask
from services.search.settings import SearchSettings
from services.search.stages import BEFORE, CUT_SHORT, Stages
from services.search.window import beginning

NO_TOKENS = "NO_TOKENS"
"""Reason of a rerank stage that had nothing to compare sketches with."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A query's vector, shape (dimensions,), and its tokens; None where they are not wanted, or there are none."""

    vector: NDArray[np.float32]
    tokens: QueryTokens | None


Begun: TypeAlias = "asyncio.Task[Embedded | None]"
"""An embedding that is on its way; None where the stage failed, or the query needs none."""


class QueryEmbedder:
    """The embed stage."""

    def __init__(self, embedder: Embedder, settings: SearchSettings) -> None:
        """Begin with the embedder trusted."""
        self._embedder, self._share = embedder, settings.embed_share
        self._breaker = Breaker("embedder", settings.breaker_failures, settings.breaker_pause)

    @asynccontextmanager
    async def begin(self, ask: Ask, scope: Scope, stages: Stages) -> AsyncIterator[Begun]:
        """Embed while the body runs; what the body has not waited for by its end is given up."""
        task = asyncio.create_task(self.embed(ask, scope, stages))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def finish(self, begun: Begun, ask: Ask, scope: Scope, stages: Stages) -> Embedded | None:
        """Wait for what was begun. What several wait for outlives the search that began it: then embed anew."""
        await asyncio.wait({begun})
        return await self.embed(ask, scope, stages) if begun.cancelled() else begun.result()

    async def embed(self, ask: Ask, scope: Scope, stages: Stages) -> Embedded | None:
        """Embed a query."""
        if ask.mode is Mode.TEXT:
            return None

        async def work(seconds: float) -> Embedded:
            return await self._embed(ask, scope, stages, seconds)

        instead = ask.without(Mode.VECTOR)
        return await stages.run(Stage.EMBED, work, share=self._share, instead=instead, breaker=self._breaker)

    async def _embed(self, ask: Ask, scope: Scope, stages: Stages, seconds: float) -> Embedded:
        text = await beginning(self._embedder, ask.text, ask.kind)
        if len(text) < len(ask.text):
            of_it = f"the vector leg on its first {len(text)} characters"
            stages.note(Stage.EMBED, CUT_SHORT, "the query is longer than the model's window", of_it)
        sketches = ask.sketches and (await self._embedder.info()).sketches
        embeddings = await self._embedder.embed(
            [text], kind=ask.kind, lane=Lane.QUERY, timeout=seconds, sketches=sketches, tenant=scope.tenant
        )
        tokens = embeddings.query_tokens[0] if embeddings.query_tokens else None
        if sketches and tokens is None:
            stages.note(Stage.RERANK, NO_TOKENS, "what stands in for the model gives no tokens", BEFORE)
        return Embedded(await self._checked(embeddings), tokens)

    async def _checked(self, embeddings: Embeddings) -> NDArray[np.float32]:
        """Take the one vector out. Raises UnavailableError where it is none that could be compared."""
        dimensions = (await self._embedder.info()).dimensions
        vectors = embeddings.vectors
        if vectors.shape != (1, dimensions) or not np.isfinite(vectors).all():
            raise UnavailableError("the embedder answered with something that is not one vector of its model")
        vector: NDArray[np.float32] = vectors[0]
        return vector
