"""How the encoder's dense layers are computed: in fp32, or in int8."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memoryd.models.tensors import MICROSOFT, GraphBuilder

_LIMIT = 127  # symmetric: -128 is not used
# Of a weight that is multiplied in integers. Processors with AVX2 and without VNNI add two products in 16 bits and cut
# what does not fit (ONNX Runtime's documentation, "Quantize ONNX models"); 2 × 255 × 64 does. So all compute the same.
_WEIGHT_LIMIT = 64
_ROWS = 1 << 14


class Operand(NamedTuple):
    """What a dense layer multiplies: values (tokens, features) and, where they are quantised, a scale a token."""

    values: str
    scale: str = ""


class Dense(Protocol):
    """Adds dense layers to a graph."""

    def operand(self, x: str) -> Operand:
        """Make the operand of activations, shape (tokens, features), once for all layers that take it."""
        ...

    def product(self, x: Operand, weight: NDArray[np.float32]) -> str:
        """Multiply with a weight of shape (out, in); the bias is the caller's, who may fuse it."""
        ...


class Fp32Dense:
    """Plain matrix products."""

    def __init__(self, graph: GraphBuilder) -> None:
        self._graph = graph

    def operand(self, x: str) -> Operand:
        """Leave the activations as they are."""
        return Operand(x)

    def product(self, x: Operand, weight: NDArray[np.float32]) -> str:
        """Multiply."""
        return self._graph("MatMul", x.values, self._graph.constant(weight.T))


class Int8Dense:
    """8-bit integer products: weights with a scale an output channel, activations with a scale a token.

    Chosen by measurement (39,144 tokens of mixed English and Chinese, one thread, CPU time, AVX512-VNNI, weights up to
    127; cosine to fp32, mean / least; least cosine of a text alone to the same text in a batch):

    ========================================== ======== ================== =============
    layers                                     tokens/s cosine to fp32     alone : batch
    ========================================== ======== ================== =============
    fp32                                       1,716    1                  .999999
    this                                       3,150    .99937 / .99897    .999999
    MatMulNBits, 8 bits, block 128, level 4    2,153    .99976 / .99952    .999793
    MatMulNBits, 8 bits, block 32, level 4     1,880    .99992 / .99987    1.000000
    MatMulNBits, 8 bits, block 128, fp32       1,446    .99995 / .99993    .999999
    ========================================== ======== ================== =============

    A scale a token, not one for the whole tensor as ONNX Runtime's `quantize_dynamic` takes, is what makes a text's
    vector independent of its batch. Weights up to 64 (`_WEIGHT_LIMIT`) give .99903 / .99851 on any processor; those up
    to 127 gave .99889 / .99848 on one without VNNI, and .97 where weights have no structure (148 passages of three
    retrieval sets). Activations are unsigned with zero point 128: signed ones take a path in ONNX Runtime that is four
    times as slow.
    """

    def __init__(self, graph: GraphBuilder) -> None:
        self._graph = graph

    def operand(self, x: str) -> Operand:
        """Quantise each token by its own largest value."""
        g = self._graph
        largest = g("ReduceMax", g("Abs", x), g.ints(-1), keepdims=0)
        # Never 0, where it would divide by itself; activations of this size are noise.
        scale = g("Mul", g("Max", largest, g.constant(np.float32(1e-6))), g.constant(np.float32(1 / _LIMIT)))
        zero = g("Expand", g.constant(np.array([_LIMIT + 1], np.uint8)), g("Shape", scale))
        return Operand(g("QuantizeLinear", x, scale, zero, axis=0), g("Unsqueeze", scale, g.ints(-1)))

    def product(self, x: Operand, weight: NDArray[np.float32]) -> str:
        """Multiply in integers, scale back to float."""
        g = self._graph
        values, scales = quantise_rows(weight, _WEIGHT_LIMIT)
        one, zero = g.constant(np.float32(1)), g.constant(np.uint8(_LIMIT + 1))
        weights = (g.constant(values.T), one, g.constant(scales), zero)
        return g("Mul", g("MatMulIntegerToFloat", x.values, *weights, domain=MICROSOFT), x.scale)


def quantise_rows(values: NDArray[np.float32], limit: int = _LIMIT) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise (rows, columns) symmetrically to integers of up to `limit` with a scale a row, shape (rows,)."""
    quantised, scales = np.empty(values.shape, np.int8), np.empty(len(values), np.float32)
    for first in range(0, len(values), _ROWS):  # bounds the temporary arrays
        part = values[first : first + _ROWS]
        scale = np.abs(part).max(axis=1) / np.float32(limit)
        scale[scale == 0] = 1
        scales[first : first + _ROWS] = scale
        quantised[first : first + _ROWS] = np.rint(part / scale[:, None])
    return quantised, scales
