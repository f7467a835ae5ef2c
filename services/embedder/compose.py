"""Making the embedder that settings describe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from memoryd.models.spec import default_folder, find_spec
from services.embedder.engines.engine import Engine, Reranker
from services.embedder.metrics import EmbedderMetrics
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_embedder(
    settings: EmbedderSettings, *, metrics: EmbedderMetrics | None = None
) -> AsyncIterator[EmbedderService]:
    """Load the model, warm it up, and serve until the context ends. Raises ModelError, ConfigError."""
    engine = await asyncio.to_thread(load_engine, settings)
    reranker = await asyncio.to_thread(_reranker, settings)
    service = EmbedderService(engine, settings, reranker=reranker, metrics=metrics)
    try:
        await service.start()
        info = engine.info
        _log.info("model ready", model=info.name, engine=info.engine, fingerprint=info.fingerprint)
        yield service
    finally:
        await service.close()


def load_engine(settings: EmbedderSettings) -> Engine:
    """Load the engine that the settings name. Raises ModelError, ConfigError."""
    if settings.engine == "onnx":
        from services.embedder.engines.onnx import OnnxEngine  # noqa: PLC0415  (each engine loads its own runtime)

        return OnnxEngine.load(settings.model_dir or default_folder(find_spec(settings.model), settings.variant))
    from services.embedder.engines.sentence_transformers import SentenceTransformersEngine  # noqa: PLC0415

    return SentenceTransformersEngine.load(settings)


def _reranker(settings: EmbedderSettings) -> Reranker | None:
    if not settings.cross_encoder:
        return None
    from services.embedder.engines.cross_encoder import CrossEncoderReranker  # noqa: PLC0415  (needs torch)

    return CrossEncoderReranker.load(settings.cross_encoder, settings.device)
