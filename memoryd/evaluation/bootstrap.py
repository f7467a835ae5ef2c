"""Bootstrap over queries (Efron 1979): how far a mean, or a mean difference, could lie from the one measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_RESAMPLES = 4000
_BLOCK = 200  # resamples drawn at once: bounds the memory of large sets
_TAIL = 2.5  # percent on either side: a 95 % interval
_SEED = 0


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Give the 95 % percentile interval of the mean; the same for the same values.

    Of paired differences it tells whether two runs differ: it does not hold 0 then.
    """
    data, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(_SEED)
    means = np.concatenate(
        [data[rng.integers(len(data), size=(_BLOCK, len(data)))].mean(axis=1) for _ in range(_RESAMPLES // _BLOCK)]
    )
    low, high = np.percentile(means, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
