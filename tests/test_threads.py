"""What people reported of models that fail on DirectML, and the answer at the release and the target of each report.

A thread is a number of microsoft/onnxruntime, or names its repository. Models are the smallest that have the node.
"""

from __future__ import annotations

from typing import Final

import onnx
import pytest

from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import parsed

LOADS: Final = "it loads\n  1 node on DirectML: 1 accepted"
BEFORE: Final = "ONNX Runtime's provider refuses it before DirectML is asked"
WINDOWS: Final = "windows-11-22h2"
HALF: Final = "(float[1,1,4,6] x) => (y) <float[4] s = {1, 1, 0.5, 0.5}> { [half] y = Resize(x, , s) }"
OPEN_HALF: Final = HALF.replace("1,1,4,6", "N,1,4,6")
NORM: Final = "(float[1,64,8] x, float[8] w) => (y) { [norm] y = LayerNormalization(x, w) }"
SIMPLE_NORM: Final = "(float[N,64,8] x, float[8] w) => (y) { [norm] y = SimplifiedLayerNormalization(x, w) }"
MASK: Final = "(float[N,77] x) => (y) { [mask] y = Trilu<upper = 0>(x) }"
INSTANCE: Final = "(float[1,32,100] x, float[32] a, float[32] b) => (y) { [n] y = InstanceNormalization(x, a, b) }"
MATMUL_5: Final = "(float[2,2,2,3,4] a, float[1,2,2,4,3] b) => (y) { [matmul] y = MatMul(a, b) }"
TRILU_5: Final = "(float[1,1,1,4,4] x) => (y) { [mask] y = Trilu(x) }"
NINE: Final = "(float[2,2,2,2,2,2,2,2,2] x) => (y) { [t] y = Transpose<perm = [0,2,1,3,4,5,6,7,8]>(x) }"
QUANTIZED: Final = "(float[6] x) => (y) <float s = {2.0}, uint8 z = {128}> { [q] y = QuantizeLinear(x, s, z) }"
SCALE_OF_ONE: Final = (
    "(float[2,3,4] x) => (y) <float[1] s = {2.0}, uint8[1] z = {128}> { [q] y = QuantizeLinear<axis = 1>(x, s, z) }"
)
BIAS: Final = (
    "(float[1,8] x, float[8,3] w) => (y) <int32[3] c = {1, 2, 3}, float[1] s = {0.5}, int32[1] z = {0}> "
    "{ [bias] b = DequantizeLinear(c, s, z) [gemm] y = Gemm(x, w, b) }"
)
GATHERS: Final = (
    "(float[4,3] m, float[4,3] v, int64 i, int64[2] j) => (y) "
    "{ [rows] a = Gather(m, j) [row] b = Gather(v, i) [matmul] y = MatMul(a, b) }"
)
GELU: Final = (
    "(float[2,8] x) => (y) <float root = {1.4142135}, float one = {1.0}, float half = {0.5}> "
    "{ a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }"
)
RELU: Final = "(float[2,3] x) => (y) { [relu] y = Relu(x) }"

REPORTS: Final = [
    # a thread, the graph of a model at an opset, a release over a target, and the end of the summary
    ("17307, 24928: Resize over Windows' DirectML", HALF, 13, "ort-1.22", WINDOWS,
     "the session fails: Resize-13 'half' needs RESAMPLE3 (6_4)"),
    ("13975, 15255, 18613: Resize up to 1.18", HALF, 13, "ort-1.13", WINDOWS,
     "the session fails: Resize-13 'half' needs RESAMPLE2 (5_1)"),
    ("18613: Resize of an open batch", OPEN_HALF, 13, "ort-1.16", WINDOWS,
     "it loads; running fails: Resize-13 'half' needs RESAMPLE2 (5_1)"),
    ("17307: its DirectML copied beside it", HALF, 13, "ort-1.16", "onnxruntime-directml-1.16.3", LOADS),
    ("pykeio/ort#398, 25926: LayerNormalization over Windows 11", NORM, 17, "ort-1.22", "windows-11-24h2",
     "LayerNormalization-17 'norm' needs MEAN_VARIANCE_NORMALIZATION2 (6_3)"),
    ("pykeio/ort#354: SimplifiedLayerNormalization while running", SIMPLE_NORM, 17, "ort-1.20", "windows-11-23h2",
     "it loads; running fails: SimplifiedLayerNormalization-1 'norm' needs MEAN_VARIANCE_NORMALIZATION2 (6_3)"),
    ("cassiebreviu/StableDiffusion#23, #27: Trilu", MASK, 14, "ort-1.15", WINDOWS,
     "it loads; running fails: Trilu-14 'mask' needs DIAGONAL_MATRIX1 (5_1)"),
    ("12296, 6457: Windows 10", RELU, 13, "ort-1.12", "windows-10-22h2",
     ("the session fails: windows-10-22h2 has no IDMLDevice1, with which ONNX Runtime's provider compiles nodes of "
      "known sizes (E_NOINTERFACE 0x80004002)")),
    ("21583, 26529, 27260, PR 27823: MatMul of five dimensions", MATMUL_5, 13, "ort-1.18",
     "onnxruntime-directml-1.18.1",
     ("the session fails: MatMul-13 'matmul': GEMM: ATensor.DimensionCount: a dimension count of 5 was provided, but 2 "
      "to 4 was expected")),
    ("26529, 27260: Trilu of five dimensions", TRILU_5, 14, "ort-1.23", "6_4",
     f"the session fails: Trilu-14 'mask': {BEFORE}: 5 dimensions; the provider's Trilu takes 4"),
    ("microsoft/DirectML#445: nine dimensions", NINE, 13, "ort-1.15", "6_4",
     f"the session fails: Transpose-13 't': {BEFORE}: 9 dimensions; at most 8 are taken"),
    ("12677, 13330, pytorch#77979: InstanceNormalization of three dimensions", INSTANCE, 13, "ort-1.12",
     "onnxruntime-directml-1.12.1",
     ("the session fails: InstanceNormalization-6 'n': MEAN_VARIANCE_NORMALIZATION: ScaleTensor.Sizes[1]: 32 was "
      "provided, but 1 or InputTensor.Sizes[1] = 1 was expected")),
    ("PR 12693: the same from 1.13 on", INSTANCE, 13, "ort-1.13", "onnxruntime-directml-1.13.1", LOADS),
    ("11902: quantised without an axis", QUANTIZED, 13, "ort-1.11", "onnxruntime-directml-1.11.1",
     f"the session fails: QuantizeLinear-13 'q': {BEFORE}: axis 1 of 1 dimensions"),
    ("11902: the same at opset 10", QUANTIZED, 10, "ort-1.11", "onnxruntime-directml-1.11.1", LOADS),
    ("11902: the same from 1.12 on", QUANTIZED, 13, "ort-1.12", "onnxruntime-directml-1.12.1", LOADS),
    ("PR 19081: a scale of one value", SCALE_OF_ONE, 13, "ort-1.16", "onnxruntime-directml-1.16.3",
     f"the session fails: QuantizeLinear-13 'q': {BEFORE}: 1 scales or zero points along an axis of 3"),
    ("PR 19081: the same from 1.17 on", SCALE_OF_ONE, 13, "ort-1.17", "onnxruntime-directml-1.17.0", LOADS),
    ("14835: a bias of a quantised model", BIAS, 13, "ort-1.14", "onnxruntime-directml-1.14.1",
     f"the session fails: DequantizeLinear-13 'bias': {BEFORE}: axis 1 of 1 dimensions"),
    ("12767: two Gathers and a MatMul by a vector", GATHERS, 13, "ort-1.12", "onnxruntime-directml-1.12.1",
     ("the session fails: MatMul-13 'matmul': CompileGraph refuses it: the output has a TotalTensorSizeInBytes of 12, "
      "the input of 4 (DML-GRAPH-TotalTensorSizeInBytes)")),
    ("an Erf-GELU at opset 20", GELU, 20, "ort-1.20", "onnxruntime-directml-1.20.1",
     "it loads\n  1 node on the CPU, 4 gone before"),
    ("an Erf-GELU at opset 20, before 1.20", GELU, 20, "ort-1.19", "onnxruntime-directml-1.19.2",
     "it loads\n  1 node on DirectML: 1 accepted; 4 gone before"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("graph", "opset", "via", "target", "expected"), [row[1:] for row in REPORTS], ids=[row[0] for row in REPORTS]
)
def test_a_report_is_answered_at_its_release_and_target(
    check: Call, graph: str, opset: int, via: str, target: str, expected: str
) -> None:
    onnx.save(parsed(graph, opset), "a.onnx")
    assert f": {expected}\n" in check("a.onnx", "--via", via, "-t", target).stdout
