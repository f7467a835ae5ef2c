"""Making the embedder that settings describe."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from memoryd.errors import MemorydError
from memoryd.models.counting import counting_tokenizer
from memoryd.models.progress import Progress, described, no_progress
from memoryd.models.spec import default_folder, find_spec
from services.embedder.chain import Chain
from services.embedder.engines.engine import Engine, Reranker
from services.embedder.metrics import EmbedderMetrics, process_metrics
from services.embedder.remote.service import RemoteEmbedder
from services.embedder.scoring import own_scoring
from services.embedder.served import ServedEmbedder
from services.embedder.service import EmbedderService
from services.embedder.settings import EmbedderSettings

_LOG_EVERY = 2.0  # seconds

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_embedder(
    settings: EmbedderSettings, *, metrics: EmbedderMetrics | None = None, progress: Progress = no_progress
) -> AsyncIterator[ServedEmbedder]:
    """Load the model, warm it up, and serve until the context ends; progress comes from any thread.

    Raises ModelError, ConfigError, UnavailableError.
    """
    async with AsyncExitStack() as stack:
        embedder = await _open(settings, metrics, stack, progress)
        info = await embedder.info()
        _log.info(
            "model ready", model=info.name, engine=info.engine, provider=info.provider, fingerprint=info.fingerprint
        )
        yield embedder


async def _open(
    settings: EmbedderSettings, metrics: EmbedderMetrics | None, stack: AsyncExitStack, progress: Progress
) -> ServedEmbedder:
    if settings.engine == "openai":
        return await _remote(settings, stack)
    try:
        local = await _local(settings, metrics, stack, progress)
    except MemorydError as error:
        if not settings.fallback:
            raise
        _log.warning("the local model can't be used, the provider's is served instead", error=str(error))
        return await _remote(settings, stack)
    if not settings.fallback:
        return local
    remote = RemoteEmbedder(settings.openai, await local.tokenizer(), settings.queue_tokens)
    stack.push_async_callback(remote.close)
    chain = Chain(local, remote, metrics or process_metrics())
    await chain.start()
    return chain


async def _local(
    settings: EmbedderSettings, metrics: EmbedderMetrics | None, stack: AsyncExitStack, progress: Progress
) -> EmbedderService:
    _log.info("loading the model", engine=settings.engine, model=settings.model)
    engine = await asyncio.to_thread(load_engine, settings, _logged(progress))
    reranker = await asyncio.to_thread(_reranker, settings)
    _log.info("warming the model up", model=engine.info.name)
    progress("warm up", 0, 0)
    scoring = await asyncio.to_thread(own_scoring, settings, engine.info)
    service = EmbedderService(engine, settings, reranker=reranker, metrics=metrics, scoring=scoring)
    stack.push_async_callback(service.close)
    await service.start()
    return service


async def _remote(settings: EmbedderSettings, stack: AsyncExitStack) -> RemoteEmbedder:
    given = settings.openai
    tokenizer = await asyncio.to_thread(counting_tokenizer, given.tokenizer, given.query_prompt, given.passage_prompt)
    remote = RemoteEmbedder(given, tokenizer, settings.queue_tokens)
    stack.push_async_callback(remote.close)
    await remote.start(settings.warm_up_timeout)
    remote.scoring = await asyncio.to_thread(own_scoring, settings, await remote.info())
    return remote


def _logged(progress: Progress) -> Progress:
    """Also log progress: each stage as it begins, and every few seconds how far it is."""
    shown = "", 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal shown
        progress(stage, done, total)
        now = time.monotonic()
        if stage != shown[0] or now - shown[1] >= _LOG_EVERY:
            shown = stage, now
            _log.info("loading the model", stage=described(stage, done, total))

    return report


def load_engine(settings: EmbedderSettings, progress: Progress = no_progress) -> Engine:
    """Load the engine that the settings name. Raises ModelError, ConfigError."""
    if settings.engine == "onnx":
        from services.embedder.engines.onnx import OnnxEngine  # noqa: PLC0415  (each engine loads its own runtime)

        return OnnxEngine.load(
            settings.model_dir or default_folder(find_spec(settings.model), settings.variant),
            settings.device,
            unrelated=settings.unrelated,
            related=settings.related,
            progress=progress,
        )
    from services.embedder.engines.sentence_transformers import SentenceTransformersEngine  # noqa: PLC0415

    progress("load into torch", 0, 0)
    return SentenceTransformersEngine.load(settings)


def _reranker(settings: EmbedderSettings) -> Reranker | None:
    if not settings.cross_encoder:
        return None
    from services.embedder.engines.cross_encoder import CrossEncoderReranker  # noqa: PLC0415  (needs torch)

    return CrossEncoderReranker.load(settings.cross_encoder, settings.device)
