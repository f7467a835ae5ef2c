"""Prometheus metrics of the indexer."""

from __future__ import annotations

from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class IndexerMetrics:
    """The counters; one instance a registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.files = Counter(
            "memoryd_indexer_files",
            "Deliveries by how they ended: indexed, unchanged, deleted, old, quarantined, retried, given_back, "
            "conflict, abandoned.",
            ["outcome"],
            registry=registry,
        )
        self.failures = Counter(
            "memoryd_indexer_failures",
            "Failures by stage (fetch, compose, embed, write, sweep) and reason.",
            ["stage", "reason"],
            registry=registry,
        )
        self.chunks = Counter("memoryd_indexer_chunks", "Chunks written to both stores.", registry=registry)
        self.tokens = Counter("memoryd_indexer_embedded_tokens", "Tokens embedded.", registry=registry)
        self.collected = Counter(
            "memoryd_indexer_collected_chunks", "Chunks deleted by the sweeper.", registry=registry
        )
        self.repairs = Counter(
            "memoryd_indexer_repairs",
            "What the repair job has found, by defect and by what was done about it.",
            ["defect", "treatment"],
            registry=registry,
        )
        self.seconds = Histogram(
            "memoryd_indexer_group_seconds",
            "Time of one group in a stage: compose, embed, write.",
            ["stage"],
            buckets=_SECONDS,
            registry=registry,
        )


@cache
def default_metrics() -> IndexerMetrics:
    """Give the metrics of the process: they can be registered once."""
    return IndexerMetrics()


@cache
def process_metrics() -> IndexerMetrics:
    """Give the process's own, in the default registry: several services of one process share them."""
    return IndexerMetrics()
