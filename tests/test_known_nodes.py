"""Known departures of nodes: each row with a condition has a model that gets its note, and one that does not."""

from __future__ import annotations

import json
from typing import Final

import onnx
import pytest

from dml_tile.directml.known import known
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import parsed, placed_model
from tests.helpers.paths import ROOT

NEWEST: Final = "onnxruntime-directml-1.24.4"


def notes(graph: str, opset: int, target: str) -> set[str]:
    """The known departures in a model, read in this process."""
    return {reason.rule for _, reason in placed_model(parsed(graph, opset), target).notes_at(0)}


def unary(operator: str, types: str = "float[2,3]", attributes: str = "", made: str = "") -> str:
    return f"({types} x) => ({made or types} y) {{ y = {operator}{attributes}(x) }}"


def layer_norm(type_: str, attributes: str = "") -> str:
    return f"({type_}[2,3] x, {type_}[3] s) => ({type_}[2,3] y) {{ y = LayerNormalization{attributes}(x, s) }}"


def resize(attributes: str, sizes: str, made: str, roi: str = "", type_: str = "float") -> str:
    """A Resize from 11 on, with constant output sizes."""
    rest = f", float[8] roi = {{{roi}}}" if roi else ""
    given = f"x, {'roi' if roi else ''}, , sizes"
    values = f"({type_}[1,1,4,4] x) => ({type_}[{made}] y) <int64[4] sizes = {{{sizes}}}{rest}>"
    return f"{values} {{ y = Resize<{attributes}>({given}) }}"


def scaled(operator: str, mode: str, scale: int) -> str:
    """A Resize-10 or Upsample-9, with constant scales."""
    made = 4 * scale
    return (
        f"(float[1,1,4,4] x) => (float[1,1,{made},{made}] y) <float[4] s = {{1, 1, {scale}, {scale}}}> "
        f'{{ y = {operator}<mode="{mode}">(x, s) }}'
    )


def clipped(type_: str, bounds: str, given: str) -> str:
    return f"({type_}[4] x) => ({type_}[4] y) <{bounds}> {{ y = Clip(x, {given}) }}"


def pooled(operator: str, attributes: str) -> str:
    return f"(float[1,1,8,8] x) => (float[1,1,a,b] y) {{ y = {operator}<{attributes}>(x) }}"


def binary(operator: str, first: str, second: str, made: str, attributes: str = "", constant: str = "") -> str:
    inputs = f"{first} a" if constant else f"{first} a, {second} b"
    initialiser = f"<{second} b = {{{constant}}}>" if constant else ""
    return f"({inputs}) => ({made} y) {initialiser} {{ y = {operator}{attributes}(a, b) }}"


def quantized(attributes: str, scales: int, x: str = "4,8") -> str:
    return (
        f"(float[{x}] x, float[{scales}] s, int8[{scales}] z) => (int8[{x}] y) "
        f"{{ y = QuantizeLinear<{attributes}>(x, s, z) }}"
    )


def sliced(start: int, end: int, step: int) -> str:
    return (
        f"(float[8] x) => (float[n] y) <int64[1] b = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{0}}, "
        f"int64[1] s = {{{step}}}> {{ y = Slice(x, b, e, a, s) }}"
    )


def transposed(attributes: str) -> str:
    return f"(float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,a,b] y) {{ y = ConvTranspose<{attributes}>(x, w) }}"


def attention(attributes: str) -> str:
    heads = "num_heads = 2, kv_num_heads = 2"
    past = "float[1,2,8,8] pk, float[1,2,8,8] pv, int32[1] n, int32[1] t"
    types = f"float[1,1,16] q, float[1,1,16] k, float[1,1,16] v, {past}"
    return (
        f"({types}) => (float[1,1,16] y, float[1,2,8,8] ok, float[1,2,8,8] ov) "
        f"{{ y, ok, ov = com.microsoft.GroupQueryAttention<{heads}{attributes}>(q, k, v, pk, pv, n, t) }}"
    )


def gru(attributes: str) -> str:
    types = "float[1,1,2] x, float[1,6,2] w, float[1,6,2] r"
    return f"({types}) => (float[1,1,1,2] y) {{ y = GRU<hidden_size = 2{attributes}>(x, w, r) }}"


def multi_head(attributes: str) -> str:
    return (
        f"(float[1,2,16] q, float[1,2,16] k, float[1,2,16] v) => (float[1,2,16] y) "
        f"{{ y = com.microsoft.MultiHeadAttention<num_heads = 2{attributes}>(q, k, v) }}"
    )


def skipped(type_: str) -> str:
    return (
        f"({type_}[1,2,8] x, {type_}[1,2,8] s, {type_}[8] g, {type_}[8] b) => ({type_}[1,2,8] y) "
        f"{{ y = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g, b) }}"
    )


def to_float(type_: str) -> str:
    return (
        f"(int8[2,4] a, int8[4,3] b, {type_}[1] s, {type_}[1] t) => ({type_}[2,3] y) "
        "{ y = com.microsoft.MatMulIntegerToFloat(a, b, s, t) }"
    )


RESIZE_11: Final = (
    "(float[1,1,4,4] x, float[0] s) => (float[1,1,8,8] y) "
    "<float[8] r = {0, 0, 0, 0, 1, 1, 1, 1}, int64[4] z = {1,1,8,8}> "
    '{ y = Resize<mode = "nearest">(x, r, s, z) }'
)


def region(roi: str, mode: str = "tf_crop_and_resize") -> str:
    return resize(f'coordinate_transformation_mode = "{mode}", mode = "linear"', "1,1,2,2", "1,1,2,2", roi)


HALF_PIXEL: Final = 'coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "nearest"'
PYTORCH: Final = 'coordinate_transformation_mode = "pytorch_half_pixel", mode = "linear"'
WHOLE: Final = "0, 0, 0, 0, 1, 1, 1, 1"

CASES: Final = [
    # a row, a model that gets it at an opset and a release, and a model that does not, or another release
    ("layer-norm-stash", layer_norm("float16"), 17, NEWEST, layer_norm("float")),
    ("layer-norm-stash", layer_norm("float16"), 17, NEWEST, layer_norm("float16", "<stash_type = 10>")),
    ("pad-negative", "(float[4] x) => (float[3] y) <int64[2] p = {0, -1}> { y = Pad(x, p) }", 13, NEWEST,
     "(float[4] x) => (float[5] y) <int64[2] p = {0, 1}> { y = Pad(x, p) }"),
    ("matmul-vector", binary("MatMul", "float[2,3]", "float[3]", "float[2]"), 13, NEWEST,
     binary("MatMul", "float[2,3]", "float[3,1]", "float[2,1]")),
    ("empty-input", unary("ReduceSum", "float[0,3]", "<keepdims = 0>", "float"), 13, NEWEST,
     unary("ReduceSum", "float[1,3]", "<keepdims = 0>", "float")),
    ("empty-input", binary("MatMul", "float[2,0]", "float[0,3]", "float[2,3]"), 13, NEWEST,
     binary("MatMul", "float[0,2]", "float[2,3]", "float[0,3]")),
    ("resize-10-linear", scaled("Resize", "linear", 2), 10, NEWEST, scaled("Resize", "nearest", 2)),
    ("resize-10-linear", scaled("Resize", "linear", 2), 10, NEWEST, scaled("Resize", "linear", 1)),
    ("upsample-linear", scaled("Upsample", "linear", 2), 9, NEWEST, scaled("Upsample", "nearest", 2)),
    ("upsample-linear", unary("Upsample", "float[1,1,2,2]", '<mode = "linear", scales = [1.0, 1.0, 2.0, 2.0]>',
                              "float[1,1,4,4]"), 7, NEWEST, unary("Abs")),
    ("resize-pytorch-half-pixel", resize(PYTORCH, "1,1,1,4", "1,1,1,4"), 13, NEWEST,
     resize(PYTORCH, "1,1,2,4", "1,1,2,4")),
    ("resize-crop-divisor", region("0, 0, 0, 0, 1, 1, 0.2, 1"), 13, NEWEST, region(WHOLE)),
    ("resize-crop-outside", region("0, 0, -0.5, 0, 1, 1, 1, 1"), 13, NEWEST, region(WHOLE)),
    ("resize-half-pixel-nn", RESIZE_11.replace('mode = "nearest"', HALF_PIXEL).replace("1,1,", "2,1,"), 11, NEWEST,
     RESIZE_11.replace('mode = "nearest"', HALF_PIXEL)),
    ("resize-antialias", resize('mode = "linear", antialias = 1', "1,1,3,3", "1,1,3,3"), 18, NEWEST,
     resize('mode = "linear", antialias = 1', "1,1,2,2", "1,1,2,2")),
    ("resize-nearest-tie", RESIZE_11, 11, "onnxruntime-directml-1.11.1", NEWEST),
    ("resize-int8-linear", resize('mode = "linear"', "1,1,8,8", "1,1,8,8", type_="uint8"), 13, NEWEST,
     resize('mode = "linear"', "1,1,8,8", "1,1,8,8")),
    ("clip-int64-default", clipped("int64", "int64 m = {0}", "m"), 12, "onnxruntime-directml-1.19.2", NEWEST),
    ("clip-min-above-max", clipped("float", "float m = {2}, float n = {1}", "m, n"), 12, NEWEST,
     clipped("float", "float m = {1}, float n = {2}", "m, n")),
    ("cast-float-bool", unary("Cast", "float[2]", "<to = 9>", "bool[2]"), 13, NEWEST,
     unary("Cast", "int32[2]", "<to = 9>", "bool[2]")),
    ("cast-bool-bytes", unary("Cast", "int32[2]", "<to = 9>", "bool[2]"), 13, "onnxruntime-directml-1.20.1", NEWEST),
    ("quantize-axis", quantized("axis = 0", 4), 21, NEWEST, quantized("axis = 1", 8)),
    ("quantize-block-size", quantized("axis = 1, block_size = 8", 1, "1,8").replace("float[1] s", "float[1,1] s")
     .replace("int8[1] z", "int8[1,1] z"), 21, "onnxruntime-windowsml-1.25.0", NEWEST),
    ("recurrent-clip", gru(", clip = 1.0"), 14, NEWEST, gru("")),
    ("isinf-neither", unary("IsInf", "float[2]", "<detect_positive = 0, detect_negative = 0>", "bool[2]"), 10, NEWEST,
     unary("IsInf", "float[2]", "<detect_positive = 0>", "bool[2]")),
    ("bit-shift", binary("BitShift", "uint8[1]", "uint8[1]", "uint8[1]", '<direction = "LEFT">', "8"), 11, NEWEST,
     binary("BitShift", "uint8[1]", "uint8[1]", "uint8[1]", '<direction = "LEFT">', "7")),
    ("same-pooling", pooled("MaxPool", 'auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [3, 3]'), 12, NEWEST,
     pooled("MaxPool", 'auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [3, 3]')),
    ("average-pool-ceil", pooled("AveragePool", "kernel_shape = [3, 3], ceil_mode = 1, count_include_pad = 1"), 11,
     NEWEST,
     pooled("AveragePool", "kernel_shape = [3, 3], ceil_mode = 1")),
    ("average-pool-asymmetric",
     pooled("AveragePool", "kernel_shape = [3, 3], pads = [0, 0, 1, 1], count_include_pad = 1"), 11, NEWEST,
     pooled("AveragePool", "kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1")),
    ("max-pool-dilated", pooled("MaxPool", "kernel_shape = [2, 2], dilations = [2, 1]"), 12, NEWEST,
     pooled("MaxPool", "kernel_shape = [2, 2], dilations = [1, 1]")),
    ("conv-transpose-output-shape", transposed("output_shape = [9, 9], dilations = [2, 2]"), 11, NEWEST,
     transposed("output_shape = [6, 6]")),
    ("conv-transpose-same", transposed('auto_pad = "SAME_UPPER"'), 11, "onnxruntime-directml-1.12.1", NEWEST),
    ("dropout-mask", "(float[2] x) => (float[2] y, float[2] m) { y, m = Dropout(x) }", 7, NEWEST,
     unary("Dropout", "float[2]")),
    ("reverse-sequence", binary("ReverseSequence", "float[2,3,4]", "int64[3]", "float[2,3,4]"), 10, NEWEST,
     binary("ReverseSequence", "float[2,3]", "int64[3]", "float[2,3]")),
    ("slice-least-start", sliced(-(2**31), -1, 1), 13, NEWEST, sliced(0, -1, 1)),
    ("slice-backward", sliced(7, 2**31 - 1, -1), 13, NEWEST, sliced(7, -(2**31), -1)),
    ("mvn", unary("MeanVarianceNormalization", "float[1,2,3,4]"), 13, NEWEST,
     unary("MeanVarianceNormalization", "float[1,2,3,4]", "<axes = [2, 3]>")),
    ("reduce-integer-overflow", unary("ReduceSum", "int32[2,3]", "<keepdims = 0>", "int32"), 13, NEWEST,
     unary("ReduceSum", "float[2,3]", "<keepdims = 0>", "float")),
    ("asin", unary("Asin"), 7, NEWEST, unary("Sin")),
    ("integer-zero-divisor", binary("Div", "int32[2]", "int32[2]", "int32[2]", "", "1, 0"), 13, NEWEST,
     binary("Div", "float[2]", "float[2]", "float[2]", "", "1, 0")),
    ("gqa-attributes", attention(", do_rotary = 1"), 17, NEWEST, attention("")),
    ("gqa-attributes", attention(", local_window_size = 4"), 17, NEWEST, attention(", local_window_size = -1")),
    ("mha-unidirectional", multi_head(", unidirectional = 1"), 17, NEWEST, multi_head("")),
    ("skip-simplified-half", skipped("float16"), 17, NEWEST, skipped("float")),
    ("dft", unary("DFT", "float[1,8,1]", "", "float[1,8,2]"), 17, NEWEST, unary("Abs")),
    ("stft", "(float[1,8,1] x) => (float[1,a,b,2] y) <int64 s = {2}, int64 l = {4}> { y = STFT(x, s, , l) }", 17,
     NEWEST,
     unary("Abs")),
    ("squeeze-all", unary("Squeeze", "float[1,3]", "", "float[3]"), 11, "onnxruntime-directml-1.12.1", NEWEST),
    ("squeeze-all-13", unary("Squeeze", "float[1,3]", "", "float[3]"), 13, "onnxruntime-directml-1.13.1", NEWEST),
    ("integer-to-float-half", to_float("float16"), 17, NEWEST, to_float("float")),
    ("roi-align-10", "(float[1,1,4,4] x, float[1,4] r, int64[1] i) => (float[1,1,1,1] y) { y = RoiAlign(x, r, i) }", 10,
     NEWEST, unary("Abs")),
    ("resize-half-roi", RESIZE_11.replace("float[8]", "float16[8]"), 11, "onnxruntime-directml-1.9.0", NEWEST),
]  # fmt: skip


@pytest.mark.parametrize(("row", "graph", "opset", "target", "other"), CASES, ids=[case[0] for case in CASES])
def test_a_node_gets_its_note(row: str, graph: str, opset: int, target: str, other: str) -> None:
    rule = f"ORT-KNOWN-{row}"
    assert rule in notes(graph, opset, target)
    without = (graph, opset, other) if other == NEWEST else (other, opset, target)
    assert rule not in notes(*without)


def test_each_row_with_a_condition_has_both_cases() -> None:
    rows = {row.id.removeprefix("ORT-KNOWN-") for row in known().values() if row.where and row.nodes}
    assert rows == {case[0] for case in CASES}


@pytest.mark.parametrize(
    ("file", "rule"),
    [("ln_fp16_stash", "layer-norm-stash"), ("reduce_min_empty", "empty-input"), ("roi_align_10", "roi-align-10")],
)
def test_a_reported_model_has_a_note_and_no_other_placement(check: Call, file: str, rule: str) -> None:
    arguments = str(ROOT / f"tests/data/{file}.onnx"), "--via", "ort", "-t", "6_4"
    plain = check(*arguments)
    assert plain.exit_code == 0
    assert ": it loads\n  1 node on DirectML: 1 accepted\n" in plain.stdout
    assert f"note[ORT-KNOWN-{rule}]" in plain.stdout
    (node,) = json.loads(check(*arguments, "--format", "json").stdout)["nodes"]
    assert node["rule"] == f"ORT-KNOWN-{rule}"
    assert check(*arguments, "--fail-on", "note").exit_code == 1
    assert check(*arguments, "--fail-on", "note", "--ignore", "ORT-KNOWN").exit_code == 0


def grouped(*groups: int) -> str:
    """Convolutions of 8 channels, one for each number of groups."""
    weights = ", ".join(f"float[8,{8 // number},3,3] w{i}" for i, number in enumerate(groups))
    outputs = ", ".join(f"float[1,8,6,6] y{i}" for i, _ in enumerate(groups))
    nodes = " ".join(f"y{i} = Conv<group = {number}>(x, w{i})" for i, number in enumerate(groups))
    return f"(float[1,8,8,8] x, {weights}) => ({outputs}) {{ {nodes} }}"


def printed(check: Call, graph: str, *arguments: str, opset: int = 13, via: str = "ort") -> str:
    onnx.save(parsed(graph, opset), "a.onnx")
    return check("a.onnx", "--via", via, *arguments).stdout


GROUPED: Final = "note[DML-KNOWN-grouped-convolution] Conv-11: CONVOLUTION: DirectML 1.8.0 may compute it wrongly"


@pytest.mark.parametrize("target", ["windows-11-22h2", "directml-1.8", "onnxruntime-directml-1.11.1"])
def test_the_operators_of_a_node_have_the_notes_of_the_targets_directml(check: Call, target: str) -> None:
    found = printed(check, grouped(4), "-t", f"{target},directml-1.8.2,windows-11-24h2")
    assert f"{GROUPED} (certain parameters, since 1.7.0, fixed in 1.8.2) (node 0, at {target})\n" in found
    assert "    try: ship DirectML 1.8.2 or later, or use ONNX Runtime 1.12 or later\n" in found
    assert found.count("DML-KNOWN") == 1
    assert "DML-KNOWN" not in printed(check, grouped(1), "-t", target)


@pytest.mark.parametrize("sizes", ["2", "n"])
def test_the_operators_of_a_node_are_in_a_graph(check: Call, sizes: str) -> None:
    cast = unary("Cast", f"float[{sizes}]", "<to = 6>", f"int32[{sizes}]")
    note = "note[DML-KNOWN-elided-casts] Cast-13: CAST: DirectML 1.12.0 may take the cast out of the compiled graph"
    assert note in printed(check, cast, "-t", "onnxruntime-directml-1.15.1")
    assert "DML-KNOWN" not in printed(check, cast, "-t", "onnxruntime-directml-1.16.3")
    half = unary("Relu", f"float[{sizes}]", "", f"float[{sizes}]")
    assert "DML-KNOWN" not in printed(check, half, "-t", "onnxruntime-directml-1.15.1")


def test_a_node_whose_operators_are_refused_has_no_note(check: Call) -> None:
    nine = "(float[1,1,1,1,1,1,1,1,2] x) => (int32[1,1,1,1,1,1,1,1,2] y) { y = Cast<to = 6>(x) }"
    found = printed(check, nine, "-t", "onnxruntime-directml-1.15.1")
    assert ("1 refused" in found, "DML-KNOWN" in found) == (True, False)


def test_the_notes_on_operators_are_one_line_a_kind_and_are_selected_as_others(check: Call) -> None:
    found = printed(check, grouped(2, 4, 1, 8), "-t", "windows-11-22h2")
    assert f"{GROUPED} (certain parameters, since 1.7.0, fixed in 1.8.2) (3 nodes, first node 0)\n" in found
    assert found.count("DML-KNOWN") == 1
    arguments = "a.onnx", "--via", "ort", "-t", "windows-11-22h2"
    nodes = json.loads(check(*arguments, "--format", "json").stdout)["nodes"]
    assert [node["rule"] for node in sorted(nodes, key=str)] == ["DML-KNOWN-grouped-convolution"] * 2 + [""] + [
        "DML-KNOWN-grouped-convolution"
    ]
    for options, status in (
        ([], 0),
        (["--fail-on", "note"], 1),
        (["--fail-on", "note", "--ignore", "DML-KNOWN"], 0),
        (["--fail-on", "note", "--ignore", "ORT-KNOWN"], 1),
    ):
        assert check(*arguments, *options).exit_code == status, options


@pytest.mark.parametrize(
    ("target", "release"), [("6_2", "1.24"), ("directml-1.12.1", "1.24"), ("onnxruntime-directml-1.18.1", "1.18")]
)
def test_the_notes_on_nodes_go_by_the_release_that_the_back_end_means(check: Call, target: str, release: str) -> None:
    note = f"note[ORT-KNOWN-asin] Asin-7: onnxruntime {release} is known to be up to 1e-4 off"
    assert note in printed(check, unary("Asin"), "-t", target)


def test_a_named_release_over_a_windows_has_its_own_notes_and_the_directml_of_windows(check: Call) -> None:
    for via, is_noted in (("ort-1.11", True), ("ort-1.12", False)):
        text = printed(check, RESIZE_11, "-t", "windows-11-22h2", opset=11, via=via)
        assert ("ORT-KNOWN-resize-nearest-tie" in text) == is_noted
    assert GROUPED in printed(check, grouped(4), "-t", "windows-11-22h2", via="ort-1.12")
