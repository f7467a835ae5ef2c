"""Embeddings of queries, kept: a query that comes again costs no model call."""

from __future__ import annotations

import hashlib
import time
import unicodedata
from collections.abc import Hashable, Sequence
from functools import partial

from cachetools import LRUCache

from memoryd.domain.queries import ModelInfo
from memoryd.errors import DeadlineExceededError
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer
from services.search.flights import Flights
from services.search.metrics import CACHE_BYTES, Outcome, count

_NAME = "vectors"
_WORTH_TRYING = 0.05  # seconds
_ENTRY_BYTES = 500  # of an entry, beside its arrays


class CachingEmbedder(Embedder):
    """An embedder in front of another one; single texts of the query lane are embedded once.

    The key is the model's fingerprint, the tenant (so that nobody can tell from the time it takes what another one has
    asked) and the text, in NFC and with its white space evened out: what is embedded is that, so texts with one key
    have one vector. Kept are hashes of texts, not texts.
    """

    def __init__(self, embedder: Embedder, most_bytes: int) -> None:
        """Keep at most so many bytes; 0: nothing."""
        self._embedder = embedder
        self._kept: LRUCache[Hashable, Embeddings] = LRUCache(most_bytes, _size)
        self._flights: Flights[Embeddings] = Flights()

    async def info(self) -> ModelInfo:
        """Describe the model."""
        return await self._embedder.info()

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer."""
        return await self._embedder.tokenizer()

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        """Embed texts within `timeout` seconds."""
        embed = partial(self._embedder.embed, kind=kind, lane=lane, sketches=sketches, tenant=tenant)
        if lane is not Lane.QUERY or len(texts) != 1:
            return await embed(texts, timeout=timeout)
        text = " ".join(unicodedata.normalize("NFC", texts[0]).split()) or texts[0]
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        key = ((await self.info()).fingerprint, tenant, kind, sketches, digest)
        if (kept := self._kept.get(key)) is not None:
            count(_NAME, Outcome.HIT)
            return kept
        end = time.monotonic() + timeout

        async def work() -> Embeddings:
            return await embed([text], timeout=end - time.monotonic())

        try:
            made, shared = await self._flights.run(key, end, work)
        except DeadlineExceededError:
            if end - time.monotonic() < _WORTH_TRYING:
                raise
            made, shared = await work(), False  # whoever began it had less time
        count(_NAME, Outcome.SHARED if shared else Outcome.MISS)
        whole = bool(made.query_tokens) or not sketches  # else a stand-in made it, for as long as it must
        if whole and _size(made) <= self._kept.maxsize:
            self._kept[key] = made
            CACHE_BYTES.labels(_NAME).set(self._kept.currsize)
        return made

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query, 0 to 1 each."""
        return await self._embedder.rerank(query, texts, timeout=timeout)


def _size(embeddings: Embeddings) -> int:
    tokens = sum(each.vectors.nbytes + each.rarity.nbytes for each in embeddings.query_tokens)
    return _ENTRY_BYTES + embeddings.vectors.nbytes + tokens
