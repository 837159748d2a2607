#!/usr/bin/env bash
# onnx 1.23.2: onnx.reference.ReferenceEvaluator on Softmax, LogSoftmax and Hardmax of opsets 1 to 12.
# Behaviour: it computes them as opset 13 defines them, along one axis, and says nothing. Until 12 the input is a matrix
#   of two dimensions, divided at the axis, and the sum goes over all dimensions from there on, as in onnxruntime 1.31.1.
# One would have guessed: the reference follows each version of an operator, or refuses the versions that it lacks.
# Concerns: whoever compares a runtime, a converter or a constant folder with the reference on models before opset 13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1
packages/bin/python - <<'PYTHON'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

x = np.linspace(0, 2, 24, dtype=np.float32).reshape(2, 3, 4)
value = helper.make_tensor_value_info
for operator in ("Softmax", "LogSoftmax", "Hardmax"):
    for opset, agrees in ((12, False), (13, True)):
        graph = helper.make_graph(
            [helper.make_node(operator, ["x"], ["y"], axis=1)], "g",
            [value("x", TensorProto.FLOAT, [2, 3, 4])], [value("y", TensorProto.FLOAT, [2, 3, 4])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
        onnx.checker.check_model(model, full_check=True)
        reference = ReferenceEvaluator(model).run(None, {"x": x})[0]
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        runtime = session.run(None, {"x": x})[0]
        weights = np.exp(x - x.max()).reshape(2, 12)
        as_defined = (weights / weights.sum(axis=1, keepdims=True)).reshape(2, 3, 4)
        print(f"{operator}, opset {opset}: sum of y[0] in the reference {reference[0].sum():.4f}, "
              f"in onnxruntime {runtime[0].sum():.4f}")
        assert np.allclose(reference, runtime, atol=1e-5) == agrees
        if operator == "Softmax":
            assert np.allclose(runtime, as_defined, atol=1e-5) == (opset == 12)
PYTHON
