"""Searching without scoring: what the legs find, with everything that scores are made from, for evaluation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memoryd.domain.names import Scope
from memoryd.domain.queries import SearchQuery
from memoryd.domain.scores import vector_score
from memoryd.domain.sketches import match_sketches
from memoryd.domain.text import analyze_query, nats_per_byte
from memoryd.errors import UnavailableError
from memoryd.evaluation.observations import Observation
from memoryd.generations.parts import Parts
from memoryd.ports import FileLog
from services.search.ask import Ask
from services.search.candidates import gather, word_weights
from services.search.days import notes_of_days
from services.search.legs import Legs
from services.search.outlines import Outlines
from services.search.settings import SearchSettings
from services.search.stages import Stages
from services.search.visibility import Visible, index_filter

_TIMEOUT = 60.0  # seconds: nobody waits for these


class Observer:
    """Runs the legs on one generation."""

    def __init__(self, parts: Parts, log: FileLog, settings: SearchSettings) -> None:
        self._parts, self._patience = parts, settings.breaker_patience
        self._outlines = Outlines(parts.manifest, log, parts.consumer, settings)
        self._legs = Legs(parts.embedder, parts.vectors, parts.texts, settings)

    async def observe(self, scope: Scope, query: SearchQuery, documents: Mapping[str, str]) -> Observation:
        """Find a query's candidates, by the legs of its mode.

        Args:
            scope: the workspace.
            query: `explain` must be set: how much of the query a chunk holds is looked up for all then.
            documents: ids of documents by path.

        Raises UnavailableError where a stage fails.
        """
        stages = Stages(_TIMEOUT, self._patience)
        view = (await self._outlines.fix(scope, stages)).view
        visible = Visible(view, query)
        where = await index_filter(scope, visible)
        words = analyze_query(query.text)
        ask = Ask(query.text, query.mode, words, notes=notes_of_days(query.text, view), sketches=True)
        found = await self._legs.run(ask, where, visible, stages)
        found = await self._legs.expand(ask, found, where, visible, stages)
        if found.mode is not query.mode:
            raise UnavailableError("; ".join(f"{entry.stage}: {entry.detail}" for entry in stages.degraded))
        model = await self._parts.embedder.info()
        weights = await word_weights(self._parts.embedder, words)
        candidates = await gather(scope, words, weights, visible, found, self._parts.vectors, stages)
        paths = [candidate.chunk.key.path for candidate in candidates]
        matches = None
        if found.tokens is not None and len(found.tokens.vectors):
            names = [candidate.chunk.id for candidate in candidates]
            held = await self._parts.vectors.sketches(scope, names)
            matches = match_sketches(found.tokens, [held.get(name, b"") for name in names], paths)
        vector = np.array([vector_score(each.cosine or 0.0, model.unrelated, model.related) for each in candidates])
        return Observation(
            documents=tuple(documents.get(path, f"?{path}") for path in paths),
            vector=None if found.vector is None else vector,
            bm25=np.array([candidate.bm25 or 0.0 for candidate in candidates]),
            coverage=np.array([candidate.coverage or 0.0 for candidate in candidates]),
            matches=matches,
            words=len(words),
            rarity=nats_per_byte(words, weights),
        )
