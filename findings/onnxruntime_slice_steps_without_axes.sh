#!/usr/bin/env bash
# onnxruntime 1.24.4, the CPU provider (onnx 1.19.1 makes the model): level basic, which is part of the default.
# Behaviour: a Slice from 0 to the end with steps of 1 and 2, and without the optional input axes, is removed as if it
#   did nothing: the result has all 6 columns instead of 3. With axes written out, or without optimisation, it has 3.
# One would have guessed: an optimisation changes no result, least of all its shape.
# Concerns: exporters and people who leave axes out, as ONNX allows; whoever compares a provider's results with another's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >seen.py <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

end = np.iinfo(np.int64).max
kept = [
    numpy_helper.from_array(np.array(values, np.int64), name)
    for name, values in {"starts": [0, 0], "ends": [end, end], "axes": [0, 1], "steps": [1, 2]}.items()
]
value = helper.make_tensor_value_info
seen = {}
for axes in ("axes", ""):
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Slice", ["e", "starts", "ends", axes, "steps"], ["s"]),
        helper.make_node("Neg", ["s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, ["a", "b"])], [value("y", TensorProto.FLOAT, ["a", "c"])], kept
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.checker.check_model(model, full_check=True)
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        seen[axes, level] = session.run(None, {"x": np.zeros((2, 6), np.float32)})[0].shape
print(onnxruntime.__version__, seen)
assert seen.pop(("", "ORT_ENABLE_BASIC")) == (2, 6)
assert {*seen.values()} == {(2, 3)}
PYTHON
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.19.1 onnxruntime==1.24.4
packages/bin/python seen.py
