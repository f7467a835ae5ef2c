"""What the graph must equal: a BERT encoder written plainly after its paper (Devlin et al. 2019), a text at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.models import checkpoint as names
from memoryd.models.checkpoint import Checkpoint
from memoryd.models.spec import Pooling

Matrix = NDArray[np.float64]


def encode(checkpoint: Checkpoint, ids: Sequence[int], pooling: Pooling = Pooling.MEAN) -> Matrix:
    """Give the mean of the last layer's token vectors, or the first one, L2-normalised."""
    weights, sizes = checkpoint.weights, checkpoint.architecture

    def dense(x: Matrix, name: str) -> Matrix:
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    def norm(x: Matrix, name: str) -> Matrix:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + sizes.epsilon)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    places = weights[names.POSITIONS][sizes.first_position :][: len(ids)] + weights[names.TYPES][0].astype(np.float64)
    x = norm(weights[names.WORDS][list(ids)] + places, names.EMBEDDING_NORM)
    for layer in range(sizes.layers):
        name = f"encoder.layer.{layer}."
        query, key, value = (
            np.split(dense(x, name + part), sizes.heads, axis=1) for part in (names.QUERY, names.KEY, names.VALUE)
        )
        heads = []
        for q, k, v in zip(query, key, value, strict=True):
            logits = q @ k.T / math.sqrt(q.shape[1])
            shares = np.exp(logits - logits.max(-1, keepdims=True))
            heads.append(shares / shares.sum(-1, keepdims=True) @ v)
        x = norm(dense(np.concatenate(heads, 1), name + names.ATTENTION_OUT) + x, name + names.ATTENTION_NORM)
        wide = dense(x, name + names.FEED_IN)
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = norm(dense(wide, name + names.FEED_OUT) + x, name + names.FEED_NORM)
    pooled: Matrix = x[0] if pooling is Pooling.CLS else x.mean(0)
    return pooled / float(np.linalg.norm(pooled))
