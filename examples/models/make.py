"""Writes the models beside it: two for ONNX Runtime, and one of them for OpenVINO (pip install onnx openvino)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper


def classifier() -> onnx.ModelProto:
    """Classify images of any batch size; its nodes are of opset 22, as torch exports them now."""
    constants = {
        "filters": np.ones((8, 3, 3, 3), np.float32),
        "first": np.array([0]),
        "rest": np.array([-1]),
        "weights": np.ones((8, 4), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["images", "filters"], ["maps"], "conv"),
        helper.make_node("Relu", ["maps"], ["positive"], "relu"),
        helper.make_node("GlobalAveragePool", ["positive"], ["means"], "pool"),
        helper.make_node("Shape", ["means"], ["shape"], "shape_of"),
        helper.make_node("Gather", ["shape", "first"], ["batch_size"], "batch_of"),
        helper.make_node("Concat", ["batch_size", "rest"], ["flat"], "flat_shape", axis=0),
        helper.make_node("Reshape", ["means", "flat"], ["features"], "flatten"),
        helper.make_node("MatMul", ["features", "weights"], ["scores"], "dense"),
        helper.make_node("Softmax", ["scores"], ["classes"], "softmax"),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 32, 32])
    classes = helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["batch", 4])
    return checked(nodes, "classifier", [images], [classes], constants, opset=22)


def checked(
    nodes: list[onnx.NodeProto],
    name: str,
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray],
    *,
    opset: int,
) -> onnx.ModelProto:
    """Return a model of these nodes, which onnx has checked."""
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 19 else 10)
    onnx.checker.check_model(made, full_check=True)
    return made


def two_tiles() -> onnx.ModelProto:
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
    return checked(nodes, "two tiles", inputs, outputs, constants, opset=13)


def main(folder: Path) -> None:
    path = folder / "two_tiles.onnx"
    onnx.save(two_tiles(), path)
    onnx.save(classifier(), folder / "classifier.onnx")
    openvino.save_model(openvino.convert_model(path), folder / "two_tiles.xml", compress_to_fp16=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
