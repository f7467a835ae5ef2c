"""Logistic regression by Newton's method (iteratively reweighted least squares), with steps that do not overshoot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEPS = 100
_RIDGE = 1e-2  # keeps what the data say nothing of near 0; the data weigh hundreds
_ENOUGH = 1e-9
_HALVINGS = 40  # of a step that leads uphill: far from the solution Newton's overshoot


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

    def loss(at: NDArray[np.float64]) -> float:
        odds = design @ at + offset
        return float((weights * (np.logaddexp(0.0, odds) - labels * odds)).sum() + 0.5 * (ridge * at**2).sum())

    reached = loss(coefficients)
    for _ in range(_STEPS):
        odds = design @ coefficients + offset
        likely = 0.5 * (1 + np.tanh(0.5 * odds))
        gradient = design.T @ (weights * (likely - labels)) + ridge * coefficients
        curvature = (design * (weights * likely * (1 - likely))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        halvings = 0
        while (tried := loss(coefficients - step)) > reached and halvings < _HALVINGS:
            step, halvings = step / 2, halvings + 1
        if tried > reached:
            break
        coefficients, reached = coefficients - step, tried
        if np.abs(step).max() < _ENOUGH:
            break
    return coefficients
