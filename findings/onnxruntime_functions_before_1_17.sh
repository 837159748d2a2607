#!/usr/bin/env bash
# onnxruntime 1.16.3 and 1.17.3, the CPU provider (onnx 1.16.2 makes the model; Python 3.8 to 3.11): level basic.
# Behaviour: 1.16.3 puts the nodes of a model's own function in place of its call, and does not optimise them: a node
#   whose inputs are all constant stays in the optimised model. 1.17.3 folds it, as both fold the same nodes without a
#   function. The results are equal.
# One would have guessed: basic optimisations reach nodes wherever they were written.
# Concerns: whoever counts or places the nodes of models whose exporter writes functions (torch.onnx, onnxscript).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >seen.py <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

constant = helper.make_tensor("c", TensorProto.FLOAT, [1], [2.0])
body = [
    helper.make_node("Constant", [], ["c"], value=constant),
    helper.make_node("Neg", ["c"], ["n"]),
    helper.make_node("Add", ["x", "n"], ["y"]),
]
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
shift = helper.make_function("own", "Shift", ["x"], ["y"], body, opsets[:1])
value = helper.make_tensor_value_info
seen = {}
for name, nodes, functions in (
    ("in a function", [helper.make_node("Shift", ["x"], ["y"], domain="own")], [shift]),
    ("in the graph", body, []),
):
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])]
    )
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = "optimised.onnx"
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.zeros(1, np.float32)})[0] == [-2.0]
    seen[name] = [node.op_type for node in onnx.load("optimised.onnx").graph.node]
print(onnxruntime.__version__, seen)
assert seen == {"in a function": sys.argv[1].split(), "in the graph": ["Add"]}
PYTHON
for pair in "1.16.3:Neg Add" "1.17.3:Add"; do
    rm -rf packages
    "${PYTHON:-python3}" -m venv packages
    packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.16.2 "numpy<2" "onnxruntime==${pair%%:*}"
    packages/bin/python seen.py "${pair#*:}"
done
