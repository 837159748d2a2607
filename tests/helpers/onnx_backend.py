"""onnx's Backend interface over the simulated device, for models of Tile and what prepares its inputs.

Page: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.backend import base
from onnx.reference import ReferenceEvaluator

from dml_tile import Device
from dml_tile.arrays.numpy import onnx_type, tiled
from dml_tile.dialects.directml import findings, tile_desc
from dml_tile.dialects.onnx import tile_of_opset
from dml_tile.directml.targets import TargetLike
from dml_tile.execution.executor import described
from dml_tile.rules.check import lowest_level

Array = NDArray[Any]

OPERATORS: Final = ("Tile", "Constant", "Identity", "Cast", "Reshape")
"""The operators that are run; all but Tile are onnx's reference implementation."""


class TileModel(base.BackendRep):
    """A model whose tiles run on a device."""

    def __init__(self, model: onnx.ModelProto, target: TargetLike | None) -> None:
        self._graph = model.graph
        self._opset = model.opset_import[0].version
        self._device = Device(target, raise_on_removal=True)

    def run(self, inputs: Sequence[Array], **kwargs: Any) -> tuple[Array, ...]:
        """Return the outputs, of inputs in the model's order, without its initialisers."""
        values = {tensor.name: numpy_helper.to_array(tensor) for tensor in self._graph.initializer}
        names = [value.name for value in self._graph.input if value.name not in values]
        values |= dict(zip(names, map(np.asarray, inputs), strict=True))
        for node in self._graph.node:
            values[node.output[0]] = self._run(node, [values[name] for name in node.input])
        return tuple(values[value.name] for value in self._graph.output)

    def _run(self, node: onnx.NodeProto, inputs: Sequence[Array]) -> Array:
        if node.op_type == "Tile":
            return _tile(self._device, self._opset, *inputs)
        made = [helper.make_empty_tensor_value_info(name) for name in (*node.input, *node.output)]
        graph = helper.make_graph([node], "one node", made[:-1], made[-1:])
        evaluator = ReferenceEvaluator(graph, opsets={"": self._opset})
        (output,) = evaluator.run(None, dict(zip(node.input, inputs, strict=True)))
        return np.asarray(output)


class TileBackend(base.Backend):
    """A tile that a feature level accepts runs on the device, others are tiled as ONNX says."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return True if all operators of the model are run."""
        return all(node.op_type in OPERATORS for node in model.graph.node)

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", *, target: TargetLike | None = None, **kwargs: Any
    ) -> TileModel:
        """Return the model, ready to be run."""
        return TileModel(model, target)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True for the CPU."""
        return device == "CPU"


def _tile(device: Device, opset: int, array: Array, *others: Array) -> Array:
    request = tile_of_opset(opset).request(onnx_type(array), array.shape, *others)
    desc = None if findings(request) else tile_desc(request)
    if desc is None or lowest_level(desc) is None:
        return tiled(array, request)
    source, out = (np.zeros(buffer.total_tensor_size_in_bytes, np.uint8) for buffer in described(desc))
    source[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    device.execute(desc, source, out)
    size = math.prod(request.output_shape) * array.itemsize
    return out[:size].view(array.dtype).reshape(request.output_shape)
