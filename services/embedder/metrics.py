"""Prometheus metrics of the embedder."""

from __future__ import annotations

from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class EmbedderMetrics:
    """The counters; one instance a registry. The label `lane` is query, bulk or rerank."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.requests = Counter(
            "memoryd_embedder_requests",
            "Embed and Rerank calls by how they ended: ok, invalid, rejected, expired, cancelled, failed.",
            ["lane", "outcome"],
            registry=registry,
        )
        self.tokens = Counter("memoryd_embedder_tokens", "Tokens embedded.", ["lane"], registry=registry)
        self.padding = Counter(
            "memoryd_embedder_padding_tokens", "Padding computed beside them.", ["lane"], registry=registry
        )
        self.reserved = Gauge(
            "memoryd_embedder_reserved_tokens", "Tokens of the calls in a lane, about.", ["lane"], registry=registry
        )
        self.waiting = Gauge(
            "memoryd_embedder_waiting_texts", "Texts that wait for a batch.", ["lane"], registry=registry
        )
        self.queue_seconds = Histogram(
            "memoryd_embedder_queue_seconds",
            "Time from a call's tokenisation to the batch of its first text.",
            ["lane"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "memoryd_embedder_batch_seconds", "Time of one batch.", ["lane"], buckets=_SECONDS, registry=registry
        )
        self.batch_tokens = Histogram(
            "memoryd_embedder_batch_tokens",
            "Tokens of one batch, without padding.",
            ["lane"],
            buckets=(16, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 16_384),
            registry=registry,
        )
        self.texts = Counter("memoryd_embedder_texts", "Texts embedded.", ["lane"], registry=registry)
        self.worker_deaths = Counter(
            "memoryd_embedder_worker_deaths", "Threads that died and were replaced.", ["lane"], registry=registry
        )
        self.fallbacks = Counter(
            "memoryd_embedder_fallbacks",
            "Calls that the provider served because the local engine failed.",
            ["lane"],
            registry=registry,
        )
        self.batch_failures = Counter(
            "memoryd_embedder_batch_failures",
            "Batches that raised.",
            ["lane"],
            registry=registry,
        )


class BatchMetrics:
    """Counts the batches of one lane; its counters are looked up once."""

    def __init__(self, metrics: EmbedderMetrics, lane: str) -> None:
        self._seconds = metrics.batch_seconds.labels(lane)
        self._sizes = metrics.batch_tokens.labels(lane)
        self._texts = metrics.texts.labels(lane)
        self._tokens = metrics.tokens.labels(lane)
        self._padding = metrics.padding.labels(lane)
        self._queued = metrics.queue_seconds.labels(lane)

    def batch(self, texts: int, tokens: int, padding: int, seconds: float) -> None:
        """Count a batch that took `seconds`."""
        self._seconds.observe(seconds)
        self._sizes.observe(tokens)
        self._texts.inc(texts)
        self._tokens.inc(tokens)
        self._padding.inc(padding)

    def queued(self, seconds: float) -> None:
        """Count how long a call has waited for the batch of its first text."""
        self._queued.observe(seconds)


@cache
def process_metrics() -> EmbedderMetrics:
    """Give the process's own, in the default registry: several services of one process share them."""
    return EmbedderMetrics()
