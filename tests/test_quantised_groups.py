"""What onnxruntime makes on DirectML of nodes between DequantizeLinear and QuantizeLinear, by release.

The groups were compared with what the CPU wheels of 1.17 to 1.24 leave of 150 random models after level 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from onnx import ModelProto, TensorProto

from dml_tile.back_ends.described_node import DescribedNode, DescriptionOutcome
from dml_tile.back_ends.descriptions import described_node
from dml_tile.back_ends.kernels import releases, version_of, version_text
from tests.helpers.onnx_graphs import model, placements, tensor, typed

LAST: Final = (1, 24)
"""The last release whose groups were compared."""
QUANTISED: Final = "y = QuantizeLinear(c, s, z)"
ONE: Final = "a = DequantizeLinear(q, s, z)"
TWO: Final = f"{ONE}; b = DequantizeLinear(w, s, z)"


def made(nodes: str, opset: int = 13) -> ModelProto:
    kept = [tensor("w", [[[[1] * 4] * 4] * 2] * 2, "uint8"), tensor("s", 0.5, "float32"), tensor("z", 3, "uint8")]
    kept += [tensor("t", 0.25, "float32"), tensor("i", [[[[1] * 4] * 4] * 2] * 2, "int8"), tensor("j", 0, "int8")]
    kept += [tensor("bias", [1, 2], "int32"), tensor("one", [0.1], "float32"), tensor("none", 0, "int32")]
    kept += [tensor("sizes", [2, 16])]
    inputs = [typed("q", [1, 2, 4, 4], TensorProto.UINT8), typed("p", [1, 2, 4, 4], TensorProto.INT8)]
    return model(nodes, inputs=inputs, initializer=kept, opset=opset, ir_version=7)


def described(found: ModelProto, release: tuple[int, int]) -> Iterator[DescribedNode]:
    """The nodes that are there at a release, as they are described."""
    for node, why in placements(found, f"onnxruntime-directml-{version_text(release)}.0"):
        if why.placement != "gone":
            assert node.kernel
            yield described_node(node.place, node.kernel(release))


def operators(nodes: str, release: str, opset: int = 13) -> list[str]:
    """The operators of the nodes; one that is not described has a question mark."""
    found = described(made(nodes, opset), version_of(release))
    return [f"{each.place.operator}{'?' * ('quantised group' in each.reason)}" for each in found]


@pytest.mark.parametrize(
    ("nodes", "fused", "first", "becomes"),
    [
        (f"{TWO}; c = Conv(a, b); {QUANTISED}", "QLinearConv", "1.17", "QUANTIZED_LINEAR_CONVOLUTION"),
        (f"{TWO}; c = Add(a, b); {QUANTISED}", "QLinearAdd", "1.17", "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"),
        (f"{ONE}; c = Add(a, a); {QUANTISED}", "QLinearAdd", "1.17", "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"),
        (f"{TWO}; c = MatMul(a, b); {QUANTISED}", "QLinearMatMul", "1.18", "QUANTIZED_LINEAR_MATRIX_MULTIPLY"),
        (f"{TWO}; y = MatMul(a, b)", "MatMulIntegerToFloat", "1.18", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"),
        (
            f"{TWO}; c = Concat<axis=0>(a, b); {QUANTISED}",
            *("QLinearConcat", "1.17", "ELEMENT_WISE_DEQUANTIZE_LINEAR"),
        ),
        (f"{ONE}; c = Sigmoid(a); {QUANTISED}", "QLinearSigmoid", "1.21", "ELEMENT_WISE_DEQUANTIZE_LINEAR"),
        (
            f"{ONE}; c = AveragePool<kernel_shape=[2, 2]>(a); {QUANTISED}",
            *("QLinearAveragePool", "1.21", "QUANTIZED_LINEAR_AVERAGE_POOLING"),
        ),
        (f"{ONE}; c = MaxPool<kernel_shape=[2, 2]>(a); {QUANTISED}", "MaxPool", "1.17", "MAX_POOLING"),
        (f"{ONE}; c = Reshape(a, sizes); {QUANTISED}", "Reshape", "1.17", "ELEMENT_WISE_IDENTITY"),
        (f"{ONE}; c = Flatten(a); {QUANTISED}", "Flatten", "1.20", "ELEMENT_WISE_IDENTITY"),
        (f"{ONE}; y = ArgMax(a)", "ArgMax", "1.17", "ARGMAX"),
    ],
)
def test_a_group_is_one_node_of_quantised_values_from_a_release_on(
    nodes: str, fused: str, first: str, becomes: str
) -> None:
    found = made(nodes)
    for release in (each for each in releases() if (1, 14) <= each <= LAST):
        nodes_there = [*described(found, release)]
        is_fused = release >= version_of(first)
        assert ([each.place.operator for each in nodes_there] == [fused]) == is_fused, release
        if is_fused:
            assert nodes_there[0].operators[0] == becomes, nodes_there


def test_a_split_group_has_all_its_results_quantised() -> None:
    nodes = f"{ONE}; c, d = Split<axis=1, num_outputs=2>(a); {QUANTISED}; x = QuantizeLinear(d, s, z)"
    (split,) = described(made(nodes, 18), (1, 24))
    assert (split.place.operator, split.operators) == ("Split", ("SPLIT",))
    assert [each["DataType"].name for each in split.descs[0]["Desc"]["OutputTensors"]] == ["UINT8", "UINT8"]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # int8 is fused on some processors alone
        (
            "a = DequantizeLinear(p, s, j); b = DequantizeLinear(i, s, j); c = Conv(a, b); y = QuantizeLinear(c, s, j)",
            "DequantizeLinear? DequantizeLinear? Conv? QuantizeLinear?",
        ),
        (f"{ONE}; c = Reshape(a, sizes); y = QuantizeLinear(c, t, z)", "DequantizeLinear? Reshape? QuantizeLinear?"),
        (
            f"{TWO}; n = Conv(a, b); c = Relu(n); {QUANTISED}",
            "DequantizeLinear? DequantizeLinear? Conv? Relu? QuantizeLinear?",
        ),
        (f"{TWO}; c = Gemm(a, b); {QUANTISED}", "DequantizeLinear DequantizeLinear Gemm QuantizeLinear"),
        (f"{TWO}; c = Conv(a, b); y = Neg(c)", "DequantizeLinear DequantizeLinear Conv Neg"),
        (
            "a = DequantizeLinear(q, s); b = DequantizeLinear(w, s); c = Conv(a, b); y = QuantizeLinear(c, s)",
            "DequantizeLinear? DequantizeLinear? Conv? QuantizeLinear?",
        ),
    ],
)
def test_a_group_that_may_be_fused_is_not_described(nodes: str, expected: str) -> None:
    assert " ".join(operators(nodes, "1.24")) == expected


def test_a_quantised_bias_is_taken_in_and_refused_where_it_is_left() -> None:
    bias = "d = DequantizeLinear(bias, one, none)"
    (conv,) = described(made(f"{TWO}; {bias}; c = Conv(a, b, d); {QUANTISED}"), (1, 24))
    assert (conv.place.operator, conv.operators) == ("QLinearConv", ("QUANTIZED_LINEAR_CONVOLUTION",))
    assert conv.descs[0]["Desc"]["BiasTensor"]["DataType"].name == "INT32"
    left, _ = described(made(f"{bias}; y = Neg(d)"), (1, 24))
    assert left.outcome is DescriptionOutcome.REFUSED


def product(*inputs: str, type_: str = "uint4", size: int = 16, rows: int = 48, more: str = "") -> ModelProto:
    """A product by 6 columns that are quantised in blocks, of these inputs of DequantizeLinear."""
    blocks = -(-rows // size)
    kept = [tensor("w", [[1] * 6] * rows, type_), tensor("s", [[0.5] * 6] * blocks, "float32")]
    kept += [tensor("z", [[1] * 6] * blocks, type_)]
    nodes = f"d = DequantizeLinear<axis=0, block_size={size}>({', '.join(inputs)}); y = MatMul(x, d){more}"
    given = [typed("x", [2, rows], TensorProto.FLOAT), typed("v", [rows, 6], TensorProto.UINT4)]
    return model(nodes, inputs=given, initializer=kept, opset=21, ir_version=10)


@pytest.mark.parametrize(
    ("inputs", "type_", "scales_and_zeros"),
    [("wsz", "uint4", 2), ("wsz", "int4", 2), ("ws", "uint4", 2), ("ws", "int4", 1)],
)
def test_a_product_by_blocks_of_4_bits_is_one_node_from_1_20_on(inputs: str, type_: str, scales_and_zeros: int) -> None:
    (node,) = described(product(*inputs, type_=type_), (1, 20))
    assert (node.place.operator, node.operators) == ("MatMulNBits", ("DEQUANTIZE", "GEMM"))
    desc = node.descs[0]["Desc"]
    assert desc["InputTensor"]["DataType"].name == "UINT4"
    assert [each["Sizes"] for each in desc["QuantizationTensors"]] == [(6, 3)] * scales_and_zeros
    before = [each.place.operator for each in described(product(*inputs, type_=type_), (1, 19))]
    assert before == ["DequantizeLinear", "MatMul"]


@pytest.mark.parametrize(
    "found",
    [
        product("w", "s", "z", size=8),
        product("w", "s", "z", rows=40),
        product("v", "s", "z"),
        product("w", "s", "z", more="; n = Neg(d)"),
    ],
    ids=["blocks of 8", "a part of a block", "no constant", "another use"],
)
def test_a_product_by_other_blocks_is_not_described(found: ModelProto) -> None:
    there = [each for each in described(found, (1, 24)) if each.place.operator == "MatMul"]
    assert [each.outcome for each in there] == [DescriptionOutcome.NOT_DESCRIBED]


def test_what_dequantises_for_other_nodes_too_stays_for_them() -> None:
    assert operators(f"{TWO}; c = Conv(a, b); {QUANTISED}; x = Neg(a)", "1.24") == [
        *("DequantizeLinear", "QLinearConv", "Neg")
    ]
    two = f"{TWO}; c = Conv(a, b); {QUANTISED}; d = Add(a, b); x = QuantizeLinear(d, s, z)"
    assert operators(two, "1.24") == ["QLinearConv", "QLinearAdd"]
