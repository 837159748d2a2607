#!/usr/bin/env bash
# onnxruntime 1.31.1, the CPU provider: random operators in models of opset 22 to 26, which it loads.
# Behaviour: RandomNormalLike, RandomUniformLike, Multinomial and Bernoulli run up to opset 21, and no session can be made
#   with them from 22 on (NOT_IMPLEMENTED). Opset 22 changed only their types (bfloat16), but gave them a new version, and
#   a kernel is registered for the versions that it names. Bernoulli, a function, fails by the name of what it expands to.
# One would have guessed: a model of float32 that runs at opset 21 runs at a later one that the release supports.
# Concerns: whoever raises a model's opset, exports at the newest, or tells users that a release supports an opset.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv packages
packages/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1
packages/bin/python - <<'PYTHON'
import onnx, onnxruntime
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)


def outcome(operator, opset):
    kind = TensorProto.INT32 if operator == "Multinomial" else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", kind, ["rows", "columns"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        return str(error).partition(" : ")[2].partition(" : ")[2].partition(" node")[0]
    return "runs"


opsets = (15, 21, 22, 26)
for operator in ("RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"):
    found = [outcome(operator, opset) for opset in opsets]
    print(operator, dict(zip(opsets, found)))
    assert found[:2] == ["runs", "runs"]
    assert all("Could not find an implementation for" in each and "(22)" in each for each in found[2:])
assert [outcome("Relu", opset) for opset in opsets] == ["runs"] * 4
PYTHON
