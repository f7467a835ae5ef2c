"""Metrics of the caches."""

from __future__ import annotations

from enum import StrEnum

from prometheus_client import Counter, Gauge

CACHE_BYTES = Gauge("memoryd_search_cache_bytes", "About how much a cache holds.", ["cache"])
_LOOKUPS = Counter("memoryd_search_cache_lookups_total", "Look-ups, by what came of them.", ["cache", "outcome"])


class Outcome(StrEnum):
    """What came of a look-up."""

    HIT = "hit"
    MISS = "miss"
    SHARED = "shared"  # the same was being made for another caller


def count(cache: str, outcome: Outcome) -> None:
    """Count a look-up in "vectors", "answers", "chunks" or "sketches".

    Of several chunks at once, a miss is where any was not there.
    """
    _LOOKUPS.labels(cache, outcome.value).inc()
