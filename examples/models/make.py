"""Writes the two models beside it: one for ONNX Runtime, and the same for OpenVINO (pip install onnx openvino)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper


def model() -> onnx.ModelProto:
    """Enlarge 8 feature maps by repeating each pixel, and number the tokens of each sentence of a batch."""
    constants = {
        "in_pairs": np.array([1, 8, 4, 1, 4, 1]),
        "twice_each": np.array([1, 1, 1, 2, 1, 2]),
        "together": np.array([1, 8, 8, 8]),
        "numbers": np.arange(16).reshape(1, 16),
        "first": np.array([0]),
        "one": np.array([1]),
    }
    nodes = [
        helper.make_node("Reshape", ["maps", "in_pairs"], ["pixels"], "split"),
        helper.make_node("Tile", ["pixels", "twice_each"], ["pixels_in_pairs"], "enlarge"),
        helper.make_node("Reshape", ["pixels_in_pairs", "together"], ["large_maps"], "join"),
        helper.make_node("Shape", ["tokens"], ["shape"], "shape_of"),
        helper.make_node("Gather", ["shape", "first"], ["batch_size"], "batch_of"),
        helper.make_node("Concat", ["batch_size", "one"], ["once_a_sentence"], "repeats", axis=0),
        helper.make_node("Tile", ["numbers", "once_a_sentence"], ["positions"], "number"),
    ]
    inputs = [
        helper.make_tensor_value_info("maps", TensorProto.FLOAT, [1, 8, 4, 4]),
        helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", 16]),
    ]
    outputs = [
        helper.make_tensor_value_info("large_maps", TensorProto.FLOAT, [1, 8, 8, 8]),
        helper.make_tensor_value_info("positions", TensorProto.INT64, ["batch", 16]),
    ]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "two tiles", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def main(folder: Path) -> None:
    path = folder / "two_tiles.onnx"
    onnx.save(model(), path)
    openvino.save_model(openvino.convert_model(path), folder / "two_tiles.xml", compress_to_fp16=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
