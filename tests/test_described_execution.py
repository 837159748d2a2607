"""The operators described of onnx's node tests, executed: their values are onnx's, but for named departures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from dml_tile.back_ends.descriptions import NotDescribed, ProviderRefusal, describe
from dml_tile.back_ends.descriptions.node import Input
from dml_tile.back_ends.placement import Placement
from dml_tile.errors import DmlError
from tests.helpers.described_execution import WrongBindingError, computed, placements, run
from tests.helpers.described_nodes import NodeTest, node_tests, written_nodes
from tests.helpers.kernel_nodes import kernel_node

DEPARTURES: Final = {
    # the provider's own
    "dequantizelinear_axis|quantizelinear_(axis|uint4|int4)": "up to 1.24, scales lie along the last dimension",
    "matmul_(4d_1d|1d_1d)": "BTensor's strides are {0,0,0,1}: each product is with the first element",
    "reduce_.*empty_set(?!_non_reduced).*": "an input without elements: nothing is dispatched",
    "convtranspose_autopad_same": "SAME of a stride has another shape in the provider, which refuses the graph's",
    "resize_.*_not_(larger|smaller)": "keep_aspect_ratio_policy is not read, so the shapes differ",
    "resize_tf_crop_and_resize_axes.*": "roi is not completed by axes",
    "resize_tf_crop_and_resize": "the divisor is at least 1",
    "resize_downsample_sizes_linear_pytorch_half_pixel": "the length that counts is the input's",
    "maxunpool_export_with_output_shape": "output_shape does not move what the indices mean",
    # DirectML's
    "qlinearmatmul_.*_float16": "scales are no FLOAT16",
    "reduce_sum_empty_axes_input_noop.*": "without axes, DirectML reduces the last dimension",
    "resize_downsample_.*_antialias": "it antialiases only where 1 / Scales > 2",
    "resize_downsample_scales_linear_align_corners": "the scale follows from whole lengths",
    "clip_min_greater_than_max": "max(Min, min(x, Max)); onnx takes the other order",
    "(max|average)pool_2d_ceil|averagepool_3d_.*_ceil_mode_is_True|maxpool_3d_dilations_use_ref_impl_large": (
        "ceil_mode's last windows: no page tells such Sizes, which are not executed"
    ),
    "roialign_mode_max": "it takes the greatest of interpolated samples, onnx of weighted corners",
    "mod_float_edge_cases_fmod_0.*": "x - y * floor(x / y) of infinities is NaN",
    "asin.*|mish_expanded": "its own approximation",
    "dynamicquantizelinear": "it multiplies by 1 / scale, so that a quotient of a half goes down",
    "attention_.*fp16_expanded": "FLOAT16 is rounded at each step",
    # onnx's
    "bernoulli.*expanded": "random numbers",
}
"""The tests whose outcome is not onnx's, by patterns of their names, with the cause."""


FAILING_ON_DIRECTML: Final = {
    # departures above
    "asin_example", "dynamicquantizelinear", "reduce_log_sum_empty_set", "reduce_log_sum_exp_empty_set",
    "reduce_max_empty_set", "reduce_min_empty_set", "reduce_prod_empty_set",
    "resize_downsample_sizes_linear_pytorch_half_pixel", "resize_upsample_sizes_nearest_not_smaller",
}  # fmt: skip
"""Tests that onnxruntime lists as failing on DirectML, if described: current_failing_tests_pure_DML in
onnxruntime/test/testdata/onnx_backend_test_series_filters.jsonc, 2025-07-23; the list gives few reasons.
"""
SUSPICIOUS: Final = {
    "constantofshape_float_ones": "listed with AffineGrid, which needs it on the CPU",
    "constantofshape_int_shape_zero": "listed with AffineGrid, which needs it on the CPU",
    "constantofshape_int_zeros": "listed with AffineGrid, which needs it on the CPU",
    "dynamicquantizelinear_expanded": "open: a GPU may divide otherwise than the software driver",
    "identity": "listed until a bug of onnxruntime's is mended",
    "resize_downsample_scales_linear": "open: listed since RESAMPLE1",
    "resize_downsample_sizes_nearest": "open: listed since RESAMPLE1",
    "resize_upsample_sizes_nearest": "open: listed since RESAMPLE1",
}
"""Others of that list, which agree with onnx here, with what is known of the reason."""


def of_known_opset(model: ModelProto) -> ModelProto:
    """A model of one node that is too new for the provider, at the newest opset that has the same operator."""
    for opset in (21, 20, 18, 13) if len(model.graph.node) == 1 else ():
        if {*placements(model)} & {Placement.DIRECTML, Placement.GONE}:
            break
        older = ModelProto()
        older.CopyFrom(model)
        older.opset_import[0].version, older.ir_version = opset, min(model.ir_version, 10)
        try:
            onnx.checker.check_model(older, full_check=True)
        except Exception:  # of any class: the older operator takes other types
            continue
        if Placement.DIRECTML in placements(older):
            return older
    return model


def is_equal(ours: Any, theirs: Any, case: NodeTest) -> bool:
    if theirs.dtype.kind not in "fV":
        return np.array_equal(ours, theirs)
    return np.allclose(ours.astype(np.float64), theirs.astype(np.float64), case.rtol, case.atol, equal_nan=True)


def arrays(side: Any) -> Iterator[Any]:
    for each in side:
        array = numpy_helper.to_array(each) if isinstance(each, TensorProto) else each
        if array is None or isinstance(array, list) or np.asarray(array).dtype.kind in "OUSc":
            raise NotDescribed("a sequence, an optional value, strings or complex numbers")
        yield np.asarray(array)


def outcome(case: NodeTest) -> str:
    """Empty where each output is onnx's, else the outcome."""
    try:
        model = of_known_opset(case.model)
        for given, expected in case.runs:
            inputs, outputs = (
                dict(zip((value.name for value in values), arrays(side), strict=False))
                for values, side in ((model.graph.input, given), (model.graph.output, expected))
            )
            values = run(model, inputs, outputs)
            if different := [name for name, array in outputs.items() if not is_equal(values[name], array, case)]:
                return f"{', '.join(different)} differ"
    except NotDescribed as error:
        return str(error) if "fit together" in str(error) else "not described"
    except (ProviderRefusal, DmlError, WrongBindingError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def outcomes(names: Iterable[str]) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of onnx's evaluator
        return {name: outcome(node_tests()[name]) for name in names}


def departure(name: str) -> str:
    return next((pattern for pattern in DEPARTURES if re.fullmatch(pattern, name)), "")


@pytest.mark.long
def test_described_operators_of_onnx_node_tests_have_the_values_that_onnx_expects() -> None:
    found = outcomes(node_tests())
    wrong = {name: text for name, text in found.items() if text not in ("", "not described") and not departure(name)}
    assert not wrong
    assert sum(text == "" for text in found.values()) > 900
    departing = {departure(name) for name, text in found.items() if text not in ("", "not described")}
    assert departing == set(DEPARTURES), "each departure occurs"


@pytest.mark.long
def test_agreement_with_onnx_is_suspicious_where_onnxruntime_lists_the_test_as_failing_on_directml() -> None:
    found = outcomes([*FAILING_ON_DIRECTML, *SUSPICIOUS])
    assert {name for name, text in found.items() if text == ""} == {*SUSPICIOUS}


NOT_COMPARED: Final = {
    **dict.fromkeys(
        ("BiasAdd", "BiasSplitGelu", "FusedMatMulActivation", "GroupNorm", "NhwcConv", "ImageScaler"),
        "onnxruntime's CPU provider lacks the operator",
    ),
    "GroupQueryAttention": "MULTIHEAD_ATTENTION1 is not executed",
    "RoiAlign-10": "ONNX's version 10 has no half_pixel, which DirectML's has",
    "NonZero": "its result is cut at a run",
    "num_heads=2: float16": "onnxruntime's CPU provider takes no stacked query, key and value",
    "com.microsoft.dml": "made by the provider, never in a file",
    "Shape-13": "no operator is created",
    "LayerNormalization-17: float16[2,8] float32": "onnx has one type for both inputs, the provider two",
}


@pytest.mark.long
@pytest.mark.parametrize(
    "text", [text for text, _ in written_nodes() if not any(part in text for part in NOT_COMPARED)]
)
def test_a_node_computes_what_onnxruntime_computes_on_the_cpu(text: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    node = kernel_node(text)
    inputs = {each.name: np.asarray(each.elements()) for each in node.inputs if each}
    values, results = (
        [helper.make_tensor_value_info(v.name, _onnx_type(v), v.shape) for v in side if v]
        for side in (node.inputs, node.outputs)
    )
    given, made = ([each.name if each else "" for each in side] for side in (node.inputs, node.outputs))
    proto = helper.make_node(node.operator, given, made, domain=node.domain, **node.attributes)
    opset = {"Affine": 9, "Crop": 9, "ParametricSoftplus": 9}.get(node.operator, max(node.since, 17))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    constants = [
        numpy_helper.from_array(inputs[each.name], each.name) for each in node.inputs if each and each.is_constant
    ]
    graph = helper.make_graph([proto], "one", values, results, constants)
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = dict(zip(filter(None, made), session.run(None, inputs), strict=True))
    found = computed(describe(node), inputs, expected)
    for name, theirs in expected.items():
        off = {"f": 2e-4 if theirs.dtype == np.float32 else 2e-2}.get(theirs.dtype.kind, 1)
        np.testing.assert_allclose(found[name].astype(np.float64), theirs.astype(np.float64), off, off)


def _onnx_type(value: Input) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(value.type))
