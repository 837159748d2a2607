#!/usr/bin/env bash
# onnx 1.23.2 (and onnxruntime 1.31.1, which runs the result): version_converter.convert_version.
# Behaviour: Pad-19 with mode "wrap", which Pad has from 19 on, becomes Pad-18 with the same mode, without a word.
#   onnx.checker, also with full_check, accepts the result, and onnxruntime's CPU provider runs it.
# One would have guessed: an error that opset 18 has no such mode, as the converter raises one for missing operators.
# Concerns: whoever lowers the opset of a model for an older runtime or another provider, and tests it by the CPU's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1
packages/bin/python - <<'PYTHON'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter

value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap")], "g",
    [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [5])],
    [numpy_helper.from_array(np.array([1, 1], np.int64), "pads")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
onnx.checker.check_model(model, full_check=True)
x = np.array([1, 2, 3], np.float32)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
y = session.run(None, {"x": x})[0].tolist()
print(f"opset 19, mode wrap: {y}")
assert y == [3, 1, 2, 3, 1]

converted = version_converter.convert_version(model, 18)
onnx.checker.check_model(converted, full_check=True)
mode = helper.get_attribute_value(converted.graph.node[0].attribute[0])
print(f"converted to opset {converted.opset_import[0].version}: mode {mode.decode()}, checked")
assert (converted.opset_import[0].version, mode) == (18, b"wrap")
schema = onnx.defs.get_schema("Pad", 18)
assert "wrap" not in schema.attributes["mode"].description and "wrap" not in schema.doc
session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
assert session.run(None, {"x": x})[0].tolist() == y
print("onnxruntime's CPU provider takes the mode at opset 18 too, so that nothing shows it")
PYTHON
