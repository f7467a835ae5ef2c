"""Building an ONNX graph without a framework: nodes by one call each, weights streamed into the external data file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

OPSET = 18
MICROSOFT = "com.microsoft"  # ONNX Runtime's own operators
# ONNX Runtime maps external data into memory; each tensor begins on a page so that it need not be copied.
_PAGE = 4096


class GraphBuilder:
    """Collects nodes and constants. `data` receives the constants; it is open for writing at its beginning."""

    def __init__(self, data: BinaryIO, data_name: str) -> None:
        self._data, self._data_name = data, data_name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, values: NDArray[Any] | np.generic) -> str:
        """Add a constant; returns its name."""
        array = np.asarray(values)
        name = f"constant_{len(self._constants)}"
        if array.size <= 1 or array.dtype == np.int64:  # shapes must be in the graph itself to be inferred
            self._constants.append(onnx.numpy_helper.from_array(array, name))
            return name
        self._data.write(b"\0" * (-self._data.tell() % _PAGE))
        tensor = TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
            dims=array.shape,
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (
            ("location", self._data_name),
            ("offset", self._data.tell()),
            ("length", array.nbytes),
        ):
            tensor.external_data.add(key=key, value=str(value))
        self._data.write(np.ascontiguousarray(array).data)
        self._constants.append(tensor)
        return name

    def ints(self, *values: int) -> str:
        """Add a vector of int64: axes, or a shape."""
        return self.constant(np.array(values, np.int64))

    def __call__(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:  # noqa: ANN401  (ONNX's)
        """Add a node with one output; returns the output's name."""
        (output,) = self.many(operator, *inputs, count=1, domain=domain, **attributes)
        return output

    def many(self, operator: str, *inputs: str, count: int, domain: str = "", **attributes: Any) -> list[str]:  # noqa: ANN401
        """Add a node with several outputs."""
        outputs = [f"{operator}_{len(self._nodes)}_{i}" for i in range(count)]
        self._nodes.append(helper.make_node(operator, list(inputs), outputs, domain=domain, **attributes))
        return outputs

    def write(
        self, path: Path, inputs: dict[str, tuple[int, list[Any]]], outputs: dict[str, tuple[str, list[Any]]]
    ) -> None:
        """Write the model: inputs as name → (type, shape), outputs as name → (what it is called so far, shape)."""
        for name, (source, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [source], [name]))
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, (_, shape) in outputs.items()],
            self._constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="memoryd")
        path.write_bytes(model.SerializeToString(deterministic=True))
