"""Prometheus metrics of the indexer."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from memoryd.domain.names import Scope
from memoryd.ports import IndexStatus

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
        names = ["tenant", "workspace", "generation"]
        self._files = Gauge("memoryd_workspace_files", "Files that can be found.", names, registry=registry)
        self._chunks = Gauge("memoryd_workspace_chunks", "Chunks that can be found.", names, registry=registry)
        self._pending = Gauge(
            "memoryd_workspace_pending", "File changes that are not yet searchable.", names, registry=registry
        )
        self._lag = Gauge(
            "memoryd_workspace_lag_seconds", "How long something has been pending.", names, registry=registry
        )
        self._aside = Gauge("memoryd_workspace_quarantined", "Files that are set aside.", names, registry=registry)
        self._checked = Gauge(
            "memoryd_workspace_checked_timestamp_seconds",
            "When log, outlines and stores were last compared; 0: not yet.",
            names,
            registry=registry,
        )
        self.seconds = Histogram(
            "memoryd_indexer_group_seconds",
            "Time of one group in a stage: compose, embed, write.",
            ["stage"],
            buckets=_SECONDS,
            registry=registry,
        )

    def tell(self, status: IndexStatus, generation: str) -> None:
        """Set the gauges of a workspace."""
        names = (status.scope.tenant, status.scope.workspace, generation)
        values = (
            (self._files, status.files),
            (self._chunks, status.chunks),
            (self._pending, status.pending),
            (self._lag, status.lag),
            (self._aside, len(status.quarantined)),
            (self._checked, status.checked),
        )
        for gauge, value in values:
            gauge.labels(*names).set(value)

    def forget(self, scope: Scope, generation: str) -> None:
        """Take the gauges of a workspace back."""
        for gauge in (self._files, self._chunks, self._pending, self._lag, self._aside, self._checked):
            with suppress(KeyError):  # a workspace that was not told of
                gauge.remove(scope.tenant, scope.workspace, generation)


@cache
def default_metrics() -> IndexerMetrics:
    """Give the metrics of the process: they can be registered once."""
    return IndexerMetrics()


@cache
def process_metrics() -> IndexerMetrics:
    """Give the process's own, in the default registry: several services of one process share them."""
    return IndexerMetrics()
