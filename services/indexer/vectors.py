"""Vectors of chunks: found again by text hash where a text was embedded before, else embedded."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

from memoryd.domain.chunks import Chunk
from memoryd.errors import MemorydError, ResourceExhaustedError
from memoryd.ports import Embedder, Embedding, Embeddings, Lane, TextKind, VectorStore
from services.indexer.failures import backoff
from services.indexer.jobs import VectorKey, Vectors, vector_key
from services.indexer.kin import Others
from services.indexer.metrics import IndexerMetrics
from services.indexer.settings import IndexerSettings

# Vectors kept here cover the groups that are not written yet; the store knows the others. One is 1.5 KB, its sketch 10.
_RECENT = 2048
# A full queue is back-pressure, no failure: wait for it a little before the file states are given back.
_BUSY_TRIES, _BUSY_BASE, _BUSY_CAP = 5, 0.1, 2.0
# Weight of the newest call in the running estimate of the embedder's speed.
_NEWEST = 0.3
# The embedder's queue gives tenants turns, each as many tokens. So a tenant's live edits, as a tenant of their own,
# wait for a batch of its import at most. No tenant has such a name.
_LIVE = "/live"


class Vectorizer:
    """The vectors of one generation; embeds only what nothing knows."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        settings: IndexerSettings,
        metrics: IndexerMetrics,
        others: Others,
    ) -> None:
        self._store, self._embedder, self._settings, self._metrics = store, embedder, settings, metrics
        self._others = others
        self._recent: OrderedDict[VectorKey, Embedding] = OrderedDict()
        self._tokens_per_second = 0.0
        self._asked: set[VectorKey] = set()
        self._answered = asyncio.Event()  # replaced by a new one each time

    @property
    def group_tokens(self) -> int:
        """Tokens that fill one group: as many as are embedded in `group_seconds`, within the bounds."""
        wanted = int(self._tokens_per_second * self._settings.group_seconds)
        return min(max(wanted, self._settings.group_min_tokens), self._settings.group_max_tokens)

    def forget(self) -> None:
        """Drop the vectors of texts that were embedded a moment ago."""
        self._recent.clear()

    def recent(self, chunks: Sequence[Chunk]) -> Vectors:
        """Find vectors of texts that were embedded a moment ago, of the same tenant."""
        keys = set(map(vector_key, chunks))
        return {key: self._recent[key] for key in keys if key in self._recent}

    async def find(self, chunks: Sequence[Chunk]) -> Vectors:
        """Find vectors that exist: of texts embedded a moment ago, or in a store, of the same tenant.

        In the generation's own store, then in those of other generations that make the same of a text.
        """
        found = self.recent(chunks)
        await self._look(self._store, chunks, found)
        for store in self._others():
            with suppress(MemorydError, TimeoutError):  # it would only have saved work
                await self._look(store, chunks, found)
        return found

    async def _look(self, store: VectorStore, chunks: Sequence[Chunk], found: Vectors) -> None:
        """Add what a store has of that which is not yet found."""
        wanted: dict[str, list[str]] = {}
        for tenant, text_hash in dict.fromkeys(map(vector_key, chunks)):
            if (tenant, text_hash) not in found:
                wanted.setdefault(tenant, []).append(text_hash)
        async with asyncio.timeout(self._settings.store_timeout):
            for tenant, hashes in wanted.items():
                stored = await store.embeddings(tenant, hashes)
                found.update({(tenant, text_hash): each for text_hash, each in stored.items()})

    async def embed(self, chunks: Sequence[Chunk], timeout: float, *, live: bool) -> Vectors:
        """Embed chunks in one call a tenant, equal texts once; those of `live` states take turns with all others."""
        end = time.monotonic() + timeout
        async with AsyncExitStack() as stack:
            if not live:  # an edit waits for no import
                async with asyncio.timeout(timeout):
                    await stack.enter_async_context(self._asking(set(map(vector_key, chunks))))
            vectors = self.recent(chunks)
            wanted: dict[str, dict[VectorKey, str]] = {}
            for chunk in chunks:
                if (key := vector_key(chunk)) not in vectors:
                    wanted.setdefault(key[0], {})[key] = chunk.embedding_input
            for tenant, texts in wanted.items():
                vectors |= await self._embed(tenant, texts, end - time.monotonic(), live=live)
            return vectors

    @asynccontextmanager
    async def _asking(self, keys: AbstractSet[VectorKey]) -> AsyncIterator[None]:
        """Begin when no other group's call asks for one of these: a text that both hold is embedded once."""
        while not self._asked.isdisjoint(keys):
            await self._answered.wait()
        self._asked |= keys
        try:
            yield
        finally:
            self._asked -= keys
            self._answered.set()
            self._answered = asyncio.Event()

    async def _embed(self, tenant: str, texts: dict[VectorKey, str], timeout: float, *, live: bool) -> Vectors:
        began = time.perf_counter()
        answer = await self._call(f"{tenant}{_LIVE}" if live else tenant, list(texts.values()), timeout)
        if not live:  # a few texts tell little about the speed
            speed = answer.tokens / max(time.perf_counter() - began, 1e-6)
            self._tokens_per_second += (speed - self._tokens_per_second) * (_NEWEST if self._tokens_per_second else 1.0)
        self._metrics.tokens.inc(answer.tokens)
        sketches = answer.sketches or [b""] * len(texts)
        new = dict(zip(texts, map(Embedding, answer.vectors, sketches), strict=True))
        self._recent.update(new)
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return new

    async def _call(self, turn: str, texts: list[str], timeout: float) -> Embeddings:
        async with asyncio.timeout(timeout):
            sketches = (await self._embedder.info()).sketches
            embed = partial(
                self._embedder.embed,
                texts,
                kind=TextKind.PASSAGE,
                lane=Lane.BULK,
                timeout=timeout,
                sketches=sketches,
                tenant=turn,
            )
            for attempt in range(1, _BUSY_TRIES):
                try:
                    return await embed()
                except ResourceExhaustedError as full:
                    told = min(full.retry_after or 0.0, _BUSY_CAP)
                    await asyncio.sleep(max(told, backoff(attempt, _BUSY_BASE, _BUSY_CAP)))
            return await embed()
