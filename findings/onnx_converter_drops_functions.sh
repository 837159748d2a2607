#!/usr/bin/env bash
# onnx 1.23.2 (and onnxruntime 1.31.1, which shows the effect): version_converter.convert_version.
# Behaviour: it returns the model without its local functions, while the nodes that call them stay; so it does when the
#   version does not change. onnx.checker, also with full_check, accepts the result.
# One would have guessed: functions are kept or inlined, or an error says that they are not converted.
# Concerns: whoever raises the opset of a model from an exporter that writes functions (torch.onnx, onnxscript).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1
packages/bin/python - <<'PYTHON'
import onnx, onnxruntime
from onnx import TensorProto, helper, version_converter

twice = helper.make_function(
    "mine", "Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])], [helper.make_opsetid("", 17)]
)
value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("Twice", ["x"], ["y"], domain="mine")], "g",
    [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3])],
)
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
model = helper.make_model(graph, functions=[twice], opset_imports=opsets, ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
for version in (17, 18):
    converted = version_converter.convert_version(model, version)
    onnx.checker.check_model(converted, full_check=True)
    calls = [node.op_type for node in converted.graph.node]
    print(f"17 to {version}: functions {len(model.functions)} -> {len(converted.functions)}, nodes {calls}, checked")
    assert (len(converted.functions), calls) == (0, ["Twice"])
    try:
        onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        print(f"  onnxruntime: {error}")
        assert "Twice" in str(error)
    else:
        raise SystemExit("onnxruntime takes the converted model")
PYTHON
