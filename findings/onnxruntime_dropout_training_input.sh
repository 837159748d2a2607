#!/usr/bin/env bash
# onnxruntime 1.24.4, the CPU provider (onnx 1.19.1 makes the model): level basic, which is part of the default.
# Behaviour: a Dropout whose training_mode is an input of the model, and whose mask nobody uses, is removed when the model
#   is loaded. With training_mode True and a ratio of 0.5 no element is dropped and none is scaled; without
#   optimisation each is 0 or twice what it was.
# One would have guessed: what a model's input decides is decided when the model runs.
# Concerns: people who estimate uncertainty by running a model many times with its Dropouts on: all runs are equal.
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
nodes = [
    helper.make_node("Neg", ["x"], ["n"]),
    helper.make_node("Dropout", ["n", "ratio", "training_mode"], ["d"], seed=1),
    helper.make_node("Neg", ["d"], ["y"]),
]
inputs = [value("x", TensorProto.FLOAT, ["n"]), value("training_mode", TensorProto.BOOL, [])]
ratio = numpy_helper.from_array(np.float32(0.5), "ratio")
graph = helper.make_graph(nodes, "g", inputs, [value("y", TensorProto.FLOAT, ["n"])], [ratio])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
onnx.checker.check_model(model, full_check=True)
seen = {}
for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC"):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {"x": np.ones(1000, np.float32), "training_mode": np.array(True)}
    seen[level] = sorted({*session.run(None, given)[0].tolist()})
print(onnxruntime.__version__, seen)
assert seen == {"ORT_DISABLE_ALL": [0, 2], "ORT_ENABLE_BASIC": [1]}
PYTHON
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.19.1 onnxruntime==1.24.4
packages/bin/python seen.py
