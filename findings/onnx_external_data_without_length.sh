#!/usr/bin/env bash
# onnx 1.23.2 and onnxruntime 1.31.1: a tensor in another file, of which external_data has no "length".
# Behaviour: onnx.load takes all bytes from the offset to the end of the file, and numpy_helper.to_array then cannot
#   shape them, unless the tensor is the last of its file. onnxruntime takes the bytes that type and dims imply.
#   onnx.checker accepts the model. (onnx.proto calls "length" optional.)
# One would have guessed: both read as many bytes as the tensor has, since "length" is optional.
# Concerns: writers of ONNX files that leave "length" out, and readers that take what onnx.load gives for the weights.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1
packages/bin/python - <<'PYTHON'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper

np.arange(8, dtype=np.float32).tofile("weights.bin")


def read(**entries):
    """What onnx and onnxruntime make of three float32 in a file of eight."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "weights.bin", **entries}.items():
        weights.external_data.add(key=key, value=str(value))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [output], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "model.onnx")
    onnx.checker.check_model("model.onnx", full_check=True)
    loaded = onnx.load("model.onnx").graph.initializer[0]
    try:
        by_onnx = numpy_helper.to_array(loaded).tolist()
    except ValueError as error:
        by_onnx = str(error)
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    by_runtime = session.run(None, {})[0].tolist()
    print(f"{entries or 'neither'}: onnx.load {len(loaded.raw_data)} bytes, {by_onnx}; onnxruntime {by_runtime}")
    return len(loaded.raw_data), by_onnx == by_runtime


assert read(offset=4, length=12) == (12, True)
assert read(offset=4) == (28, False)
assert read() == (32, False)
assert read(offset=20) == (12, True)
PYTHON
