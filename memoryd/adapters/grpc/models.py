"""Which models the embedder deployments serve: one deployment each, and while a generation changes there are two."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import structlog

from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.remote import Remote
from memoryd.domain.queries import ModelInfo
from memoryd.errors import MODEL_ABSENT, MemorydError, PreconditionFailedError, UnavailableError
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer

_ASK_AGAIN = 5.0  # seconds after which a deployment is asked again which model it serves

_log = structlog.get_logger(__name__)


class ServedModels:
    """Finds the embedder of a model. The last deployment's model is the one that is wanted."""

    def __init__(self, remotes: Sequence[Remote]) -> None:
        """Take the deployments, the current one first."""
        self._remotes = remotes
        self._bound: dict[str, GrpcEmbedder] = {}
        self._models: dict[str, ModelInfo] = {}
        self._suspect = asyncio.Event()

    @property
    def where(self) -> str:
        """The deployments, for a person."""
        return " and ".join(remote.where for remote in self._remotes)

    @property
    def wanted(self) -> ModelInfo | None:
        """The model whose generation is to answer; None while its deployment has not told."""
        return self._models.get(self._remotes[-1].where)

    @property
    def first(self) -> ModelInfo | None:
        """The model to begin with, where nothing is indexed yet: the wanted one, or else whichever is served."""
        return self.wanted or next(iter(self._models.values()), None)

    def told(self, fingerprint: str) -> ModelInfo | None:
        """Describe a model as its deployment did last; None where none does."""
        return next((model for model in self._models.values() if model.fingerprint == fingerprint), None)

    def find(self, fingerprint: str) -> GrpcEmbedder | None:
        """Find who serves a model; one that does not answer for a while is expected back with the same one.

        Of several the last: where the coming model has its own deployment, the other is only just being changed to it.
        """
        for remote in reversed(self._remotes):
            model = self._models.get(remote.where)
            if model is not None and model.fingerprint == fingerprint:
                return self._bound[remote.where]
        return None

    async def refresh(self) -> None:
        """Ask which models are served. Raises UnavailableError where nobody has ever told."""
        for remote in self._remotes:
            await self._ask(remote)
        if not self._models:
            raise UnavailableError(f"{self.where} does not tell its model: check that it runs")

    async def run(self) -> None:
        """Keep asking until cancelled; at once where a model is found to be gone."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_AGAIN):
                    await self._suspect.wait()
            self._suspect.clear()
            with suppress(MemorydError):  # as it was, then
                await self.refresh()
            await asyncio.sleep(_ASK_AGAIN / 10)  # however often a model is found to be gone

    def suspect(self) -> None:
        """Have all asked soon: one serves another model than it did."""
        self._suspect.set()

    async def _ask(self, remote: Remote) -> None:
        try:
            bound = await GrpcEmbedder(remote).bound()
            model = await bound.info()
        except MemorydError as error:
            _log.debug("an embedder does not tell its model", where=remote.where, error=str(error))
            return
        known = self._models.get(remote.where)
        if known is None or known.fingerprint != model.fingerprint:
            _log.info("an embedder serves", where=remote.where, model=model.name, fingerprint=model.fingerprint)
            self._bound[remote.where] = bound
        self._models[remote.where] = model


class ServedEmbedder(Embedder):
    """The embedder of one model, wherever that is served now; one that is served nowhere says so in each call."""

    def __init__(self, models: ServedModels, model: ModelInfo) -> None:
        """Bind to a model."""
        self._models, self._model = models, model
        self._tokenizer: Tokenizer | None = None

    async def info(self) -> ModelInfo:
        """Describe the model: how its deployment did last, or else as it was when its generation was begun."""
        return self._models.told(self._model.fingerprint) or self._model

    async def tokenizer(self) -> Tokenizer:
        """Give the model's tokenizer; it is fetched once."""
        if self._tokenizer is None:
            self._tokenizer = await self._served().tokenizer()
        return self._tokenizer

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
        """Embed texts within `timeout` seconds. Raises UnavailableError, MODEL_ABSENT where nobody serves the model."""
        try:
            return await self._served().embed(
                texts, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant
            )
        except PreconditionFailedError as error:  # it serves another model than it did
            self._models.suspect()
            raise self._absent() from error

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        """Score texts against a query within `timeout` seconds."""
        return await self._served().rerank(query, texts, timeout=timeout)

    def _served(self) -> GrpcEmbedder:
        found = self._models.find(self._model.fingerprint)
        if found is None:
            raise self._absent()
        return found

    def _absent(self) -> UnavailableError:
        return UnavailableError(
            f"no embedder serves model {self._model.name} any more: {self._models.where} has another one",
            reason=MODEL_ABSENT,
        )
