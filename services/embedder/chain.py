"""A local engine with a provider behind it, that never mixes the vectors of two models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from memoryd.domain.queries import ModelInfo
from memoryd.errors import MemorydError, UnavailableError
from memoryd.models.tokenizer import ModelTokenizer
from memoryd.ports import Embeddings, Lane, TextKind
from services.embedder.metrics import EmbedderMetrics
from services.embedder.remote.service import RemoteEmbedder
from services.embedder.served import LaneStatus, ServedEmbedder
from services.embedder.stream import Streaming

# Short and long, several scripts: two models that agree on these to four digits are one.
_PROBES = ("ready", "The library closes at six.", "图书馆六点关门。", "def area(r): return r * r")
_SAME = 0.9999
_PROBE_TIMEOUT = 30.0

_log = structlog.get_logger(__name__)


class Chain(Streaming):
    """Asks the local engine; where it fails, the provider, if and only if that gives the same vectors."""

    def __init__(self, local: ServedEmbedder, remote: RemoteEmbedder, metrics: EmbedderMetrics) -> None:
        self._local, self._remote, self._metrics = local, remote, metrics
        self._probes: NDArray[np.float32] | None = None
        self._same: bool | None = None  # None: not known yet
        self._finding_out = asyncio.Lock()

    async def start(self) -> None:
        """Keep what the local engine makes of the probes. Raises what it raises."""
        embeddings = await self._local.embed(_PROBES, kind=TextKind.PASSAGE, lane=Lane.QUERY, timeout=_PROBE_TIMEOUT)
        self._probes = embeddings.vectors

    async def info(self) -> ModelInfo:
        """Describe the local model."""
        return await self._local.info()

    def lanes(self) -> Sequence[LaneStatus]:
        """Tell how full the local queues are."""
        return self._local.lanes()

    async def tokenizer(self) -> ModelTokenizer:
        """Give the local model's tokenizer."""
        return await self._local.tokenizer()

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
        """Embed texts within `timeout` seconds; see the port for its errors.

        Nobody stands in for passages' sketches, since what is stored without one stays so. A query can do without.
        """
        try:
            return await self._local.embed(
                texts, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant
            )
        except UnavailableError:
            if (sketches and kind is TextKind.PASSAGE) or not await self._is_same():
                raise
        self._metrics.fallbacks.labels(lane).inc()
        return await self._remote.embed(texts, kind=kind, lane=lane, timeout=timeout, tenant=tenant)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Pass on: only the local engine reranks."""
        return await self._local.rerank(query, texts, timeout=timeout)

    async def close(self) -> None:
        """End both."""
        await self._local.close()
        await self._remote.close()

    async def _is_same(self) -> bool:
        """Find out, once, whether the provider has the same model; asked again while it does not answer."""
        async with self._finding_out:
            if self._same is None:
                try:
                    await self._remote.start(_PROBE_TIMEOUT)
                    found = await self._remote.embed(
                        _PROBES, kind=TextKind.PASSAGE, lane=Lane.QUERY, timeout=_PROBE_TIMEOUT
                    )
                except MemorydError as error:
                    _log.warning("the embedding provider can't stand in", error=str(error))
                    return False
                self._same = self._agrees(found.vectors)
                _log.warning("the local engine fails", provider_has_the_same_model=self._same)
            return self._same

    def _agrees(self, vectors: NDArray[np.float32]) -> bool:
        local = self._probes
        return local is not None and vectors.shape == local.shape and bool(((vectors * local).sum(1) >= _SAME).all())
