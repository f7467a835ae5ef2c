"""The models of a standalone: the configured one, and those of the generations that are kept beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
import structlog
from pydantic import ValidationError

from memoryd.domain.generations import Generation
from memoryd.domain.queries import ModelInfo
from memoryd.errors import MemorydError
from memoryd.generations.embedders import AbsentEmbedder
from memoryd.ports import Embedder
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings

# What of the settings decides which model is loaded. The rest (threads, queues) is always as configured now.
_CALIBRATION = {"query_prompt", "passage_prompt", "unrelated", "related"}
_WHICH = {"engine", "model", "model_dir", "variant", *_CALIBRATION}
_WHICH_REMOTE = {"url", "model", "dimensions", "window", "tokenizer", *_CALIBRATION}

_log = structlog.get_logger(__name__)


class Models:
    """Loads each model once, whichever generations share it."""

    def __init__(self, settings: EmbedderSettings, embedder: Embedder, model: ModelInfo, origin: str) -> None:
        self.configured, self.origin = model, origin
        self._settings = settings
        self._loaded: dict[str, tuple[Embedder, AsyncExitStack]] = {model.fingerprint: (embedder, AsyncExitStack())}

    async def embedder(self, generation: Generation) -> Embedder:
        """Give a generation's model; one that can't be loaded any more says so in each call."""
        wanted = generation.model
        if wanted.fingerprint not in self._loaded:
            stack = AsyncExitStack()
            try:
                embedder = await self._load(generation, stack)
            except MemorydError as error:
                await stack.aclose()
                _log.warning("the model of a generation is away", generation=generation.id, error=str(error))
                embedder = AbsentEmbedder(wanted, f"model {wanted.name} of generation {generation.id} is away: {error}")
            self._loaded[wanted.fingerprint] = embedder, stack
        return self._loaded[wanted.fingerprint][0]

    async def release(self, generation: Generation) -> None:
        """Unload a dropped generation's model; the configured one stays."""
        fingerprint = generation.model.fingerprint
        if fingerprint != self.configured.fingerprint and fingerprint in self._loaded:
            _, stack = self._loaded.pop(fingerprint)
            await stack.aclose()

    async def close(self) -> None:
        """Unload all that was loaded here."""
        for _, stack in reversed(self._loaded.values()):
            await stack.aclose()

    async def _load(self, generation: Generation, stack: AsyncExitStack) -> Embedder:
        why = f"model {generation.model.name} is not where it was"
        if not generation.origin:
            return AbsentEmbedder(generation.model, why)
        try:
            settings = _at(generation.origin, self._settings)
        except ValidationError:
            return AbsentEmbedder(generation.model, why)
        embedder = await stack.enter_async_context(open_embedder(settings))
        if (await embedder.info()).fingerprint != generation.model.fingerprint:
            await stack.aclose()
            return AbsentEmbedder(generation.model, f"{why}: another one is there now")
        return embedder


@asynccontextmanager
async def open_models(settings: EmbedderSettings, embedder: Embedder | None) -> AsyncIterator[Models]:
    """Load the configured model, or take the one that is given, and keep others beside it until the context ends.

    Raises ModelError, ConfigError.
    """
    async with AsyncExitStack() as stack:
        origin = ""
        if embedder is None:
            embedder = await stack.enter_async_context(open_embedder(settings))
            origin = _origin(settings)
        models = Models(settings, embedder, await embedder.info(), origin)
        stack.push_async_callback(models.close)
        yield models


def _origin(settings: EmbedderSettings) -> str:
    """Write down which model is loaded; no secret is in it."""
    which: dict[str, Any] = settings.model_dump(mode="json", include=_WHICH)
    if settings.engine == "openai":
        which["openai"] = settings.openai.model_dump(mode="json", include=_WHICH_REMOTE)
    return orjson.dumps(which, option=orjson.OPT_SORT_KEYS).decode()


def _at(origin: str, configured: EmbedderSettings) -> EmbedderSettings:
    """Give the settings that load the model of an origin. Raises ValidationError where they can't be read any more."""
    which = orjson.loads(origin)
    remote = which.pop("openai", {})
    if remote.get("url") != configured.openai.url:
        remote["api_key"] = None  # the configured provider's key is for no other one
    openai = configured.openai.model_dump() | remote
    return EmbedderSettings(**configured.model_dump() | which | {"openai": openai, "fallback": ""})
