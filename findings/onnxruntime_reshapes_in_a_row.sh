#!/usr/bin/env bash
# onnxruntime 1.24.4, the CPU provider (onnx 1.19.1 makes the model): level basic, which is part of the default.
# Behaviour: a session does not load if a Reshape whose shape a node computes is followed by a Reshape to constant sizes:
#   "Exception during initialization". Without optimisation, with the shape as an input of the model, or at opset 19, it
#   loads and runs.
# One would have guessed: an optimisation that cannot be made is left out; 1.20 leaves it out.
# Concerns: exporters that write a Reshape like another tensor and flatten its result; nothing names the two nodes.
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
like = helper.make_node("Shape", ["like"], ["shape"])
rest = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Reshape", ["r", "sizes"], ["y"])]
sizes = numpy_helper.from_array(np.array([3, 4], np.int64), "sizes")
given = {"x": np.zeros((2, 6), np.float32), "like": np.zeros((6, 2), np.float32), "shape": np.array([6, 2], np.int64)}
seen = {}
for opset in (18, 19):
    for shape in ("computed", "input"):
        other = value("like", TensorProto.FLOAT, ["a", "b"])
        nodes = [like, *rest]
        if shape == "input":
            other, nodes = value("shape", TensorProto.INT64, [2]), rest
        inputs, outputs = [value("x", TensorProto.FLOAT, [2, 6]), other], [value("y", TensorProto.FLOAT, [3, 4])]
        graph = helper.make_graph(nodes, "g", inputs, outputs, [sizes])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC"):
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            try:
                session = onnxruntime.InferenceSession(
                    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
                named = {each.name: given[each.name] for each in session.get_inputs()}
                result = session.run(None, named)[0].shape
            except Exception as error:
                result = "does not load" if "Exception during initialization" in str(error) else str(error)
            seen[opset, shape, level] = result
            print(onnxruntime.__version__, opset, shape, level, result)
assert seen.pop((18, "computed", "ORT_ENABLE_BASIC")) == "does not load"
assert {*seen.values()} == {(3, 4)}
PYTHON
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.19.1 onnxruntime==1.24.4
packages/bin/python seen.py
