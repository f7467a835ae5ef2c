"""How long answers took, in all and by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from memoryd.evaluation.metrics import percentile
from memoryd.evaluation.run import Answer


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds: `p50` and `p95` as the caller saw them, `stages` the median of each stage where it ran."""

    p50: float
    p95: float
    stages: Mapping[str, float]

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Latency:
        """Summarise."""
        times = [answer.milliseconds for answer in answers]
        stages = dict.fromkeys(stage for answer in answers for stage in answer.timings)
        return cls(
            median(times),
            percentile(times, 0.95),
            {
                stage: median([answer.timings[stage] for answer in answers if stage in answer.timings])
                for stage in stages
            },
        )

    def as_json(self) -> dict[str, Any]:
        """Name the figures as they are published."""
        return {"p50": self.p50, "p95": self.p95, "stages_p50": dict(self.stages)}
