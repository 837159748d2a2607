#!/usr/bin/env bash
# onnxruntime 1.24.4, the CPU provider (onnx 1.19.1 makes the model): level basic, which is part of the default.
# Behaviour: an Expand of {1, 3} to {0, 3}, which has no elements, is removed as if it did nothing: the result is {1, 3},
#   with three elements. Without optimisation, or if the shape is an input of the model, it is {0, 3}.
# One would have guessed: a dimension of 1 that becomes 0 is a change like one that becomes 2, which is kept.
# Concerns: models with empty batches, and whoever compares a provider's results with another's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >seen.py <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

value = helper.make_tensor_value_info
seen = {}
for rows in (0, 2):
    shape = np.array([rows, 3], np.int64)
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Expand", ["e", "shape"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    for shape_is in ("constant", "input"):
        inputs, constants = [value("x", TensorProto.FLOAT, [1, 3])], []
        if shape_is == "input":
            inputs.append(value("shape", TensorProto.INT64, [2]))
        else:
            constants.append(numpy_helper.from_array(shape, "shape"))
        graph = helper.make_graph(nodes, "g", inputs, [value("y", TensorProto.FLOAT, ["a", 3])], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        onnx.checker.check_model(model, full_check=True)
        for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC"):
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            given = {"x": np.zeros((1, 3), np.float32), "shape": shape}
            named = {each.name: given[each.name] for each in session.get_inputs()}
            seen[rows, shape_is, level] = session.run(None, named)[0].shape
print(onnxruntime.__version__, seen)
assert seen.pop((0, "constant", "ORT_ENABLE_BASIC")) == (1, 3)
assert all(result == (rows, 3) for (rows, *_), result in seen.items())
PYTHON
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.19.1 onnxruntime==1.24.4
packages/bin/python seen.py
