"""Logistic regression by Newton's method (iteratively reweighted least squares)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEPS = 100
_RIDGE = 1e-2  # keeps what the data say nothing of near 0; the data weigh hundreds
_ENOUGH = 1e-9
_LARGEST = 5.0  # of a step: far from the solution Newton's steps overshoot


def regress(
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
    offset: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Fit log odds = features · coefficients + intercept + offset.

    Args:
        features: shape (examples, features).
        labels: 0 or 1, shape (examples,).
        weights: of the examples, shape (examples,).
        offset: a part of the log odds that is given, shape (examples,).

    Returns the coefficients and, last, the intercept: shape (features + 1,).
    """
    design = np.column_stack([features, np.ones(len(features))])
    ridge = np.full(design.shape[1], _RIDGE)
    ridge[-1] = 1e-6
    coefficients: NDArray[np.float64] = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        odds = design @ coefficients + offset
        likely = 0.5 * (1 + np.tanh(0.5 * odds))
        gradient = design.T @ (weights * (likely - labels)) + ridge * coefficients
        curvature = (design * (weights * likely * (1 - likely))[:, None]).T @ design + np.diag(ridge)
        step = np.clip(np.linalg.solve(curvature, gradient), -_LARGEST, _LARGEST)
        coefficients = coefficients - step
        if np.abs(step).max() < _ENOUGH:
            break
    return coefficients
