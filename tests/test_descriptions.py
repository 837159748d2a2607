"""The DirectML operators that ONNX Runtime's DirectML provider creates of a node, by release."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, Final

import pytest

from dml_tile import check
from dml_tile.back_ends.described_node import DescriptionOutcome, NodePlace
from dml_tile.back_ends.descriptions import (
    DESCRIPTIONS,
    KnownAtRunTime,
    NotDescribed,
    OpenDescription,
    ProviderRefusal,
    creators_of,
    describe,
    described_node,
    operators_of,
)
from dml_tile.back_ends.descriptions.node import KernelNode
from dml_tile.back_ends.descriptions.rows import FUSED_DOMAIN, fused_operator, possible_of
from dml_tile.back_ends.kernels import Version, directml_kernels, releases
from dml_tile.back_ends.model_descriptions import described_alike
from dml_tile.directml.operators import operators
from dml_tile.directml.targets import NEWEST_PROVIDER, Target, target_names
from dml_tile.findings import Severity
from tests.helpers.described_nodes import described_nodes, varied, written_nodes
from tests.helpers.kernel_nodes import kernel_node, names, operator_descs

SAME: Final = "output_shape=[5] auto_pad=SAME_UPPER"
NBITS: Final = "com.microsoft:MatMulNBits N=8 K=32 block_size=32"
GQA: Final = "com.microsoft:GroupQueryAttention num_heads=4 kv_num_heads=2"
QKV: Final = "float32[1,3,32] float32[1,3,16] float32[1,3,16]"


@pytest.mark.parametrize(("text", "expected"), written_nodes())
def test_a_node_becomes_operators_that_directml_accepts(text: str, expected: str) -> None:
    node = kernel_node(text)
    made = describe(node)
    assert [each.operator for each in made] == expected.split()
    for desc in operator_descs(made):
        assert not [each for each in check(desc, "6_4", against="runtime") if each.severity is Severity.ERROR]
    sure = operators_of(node.domain, node.operator, node.since, node.release)
    assert {name for name in sure if not name.startswith("ACTIVATION_")} <= {each.operator for each in made}
    assert {each.operator for each in made} <= possible_of(node.domain, node.operator, node.since, node.release)


def possible(domain: str, operator: str, since: int, release: tuple[int, int]) -> set[tuple[str, str, str]]:
    return {(domain, operator, name) for name in possible_of(domain, operator, since, release)}


@pytest.mark.long  # over onnx's node tests
def test_nodes_become_the_operators_of_their_rows_and_each_operator_of_a_row_is_created_of_a_node() -> None:
    rng, nodes, created = Random(1), [*described_nodes()], set()
    for node in (*nodes, *(varied(rng.choice(nodes), rng) for _ in range(5000))):
        with suppress(ProviderRefusal, KnownAtRunTime, NotDescribed):
            made = {(node.domain, node.operator, each.operator) for each in describe(node)}
            assert made <= possible(node.domain, node.operator, node.since, node.release), node
            created |= made
    wanted = {
        row
        for release in releases()
        for (domain, operator), kernels in directml_kernels(release).items()
        for kernel in kernels
        for row in possible(domain, operator, kernel.since, release)
        if domain != FUSED_DOMAIN and row[2] not in operators_of(domain, operator, kernel.since, release)
    }
    assert wanted - created == set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RESAMPLE2", [("Resize", "1.12 to 1.18"), ("Upsample", "1.12 to 1.18")]),
        ("RESAMPLE3", [("Resize", "1.19 and later"), ("Upsample", "1.19 and later")]),
        ("PADDING", [("Pad", "1.9")]),
        ("ELEMENT_WISE_CLIP", [("Clip", "1.9"), ("Clip below opset 11", "1.10 and later")]),
        ("AVERAGE_POOLING1", [("AveragePool from opset 19", "1.17 and later")]),
        ("FOLD", [("Col2Im", "1.19 and later")]),
        ("LP_POOLING", [("GlobalLpPool", "1.9 and later"), ("LpPool", "1.9 and later")]),
        (
            "BATCH_NORMALIZATION",
            [(f"BatchNormalization{more}", "1.9 and later") for more in ("", " with an activation")],
        ),
        ("TOP_K", []),
    ],
)
def test_an_operator_names_the_nodes_that_become_it_by_release(name: str, expected: list[tuple[str, str]]) -> None:
    assert [(each.label, each.span) for each in creators_of(name)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Softmax-13 @1.11: float32[2,3] -> float32[2,3]", "ACTIVATION_SOFTMAX"),
        ("Softmax-13 @1.12: float32[2,3] -> float32[2,3]", "ACTIVATION_SOFTMAX1"),
        ("Resize-13 @1.12 mode=linear: float32[1,2] _ float32[2]=1,2 -> float32[1,4]", "RESAMPLE2"),
        ("Resize-13 @1.19 mode=linear: float32[1,2] _ float32[2]=1,2 -> float32[1,4]", "RESAMPLE3"),
        (
            "InstanceNormalization-6 @1.12: float32[1,2,3] float32[2] float32[2] -> float32[1,2,3]",
            "MEAN_VARIANCE_NORMALIZATION",
        ),
        (
            "InstanceNormalization-6 @1.13: float32[1,2,3] float32[2] float32[2] -> float32[1,2,3]",
            "MEAN_VARIANCE_NORMALIZATION1",
        ),
        ("LayerNormalization-17 @1.17: float32[2,3] float32[3] -> float32[2,3]", "MEAN_VARIANCE_NORMALIZATION1"),
        ("LayerNormalization-17 @1.18: float32[2,3] float32[3] -> float32[2,3]", "MEAN_VARIANCE_NORMALIZATION2"),
        ("AveragePool-19 @1.17 kernel_shape=[2,2]: float32[1,1,4,4] -> float32[1,1,3,3]", "AVERAGE_POOLING"),
        (
            "AveragePool-19 @1.17 kernel_shape=[2,2] dilations=[2,2]: float32[1,1,4,4] -> float32[1,1,2,2]",
            "AVERAGE_POOLING1",
        ),
        ("Cast-13 @1.20: float32[2] -> bool[2]", "CAST"),
        ("Cast-13 @1.21: float32[2] -> bool[2]", "CAST ELEMENT_WISE_CLIP1"),
        ("Clip-11 @1.9: float32[2] -> float32[2]", "ELEMENT_WISE_CLIP"),
        ("Clip-11 @1.10: float32[2] -> float32[2]", "ELEMENT_WISE_CLIP1"),
        ("Pad-11 @1.9: float32[2] int64[2]=1,1 -> float32[4]", "PADDING"),
        ("Pad-11 @1.10: float32[2] int64[2]=1,1 -> float32[4]", "PADDING1"),
        ("Neg-6 @1.9: float32[2] -> float32[2]", "ELEMENT_WISE_IDENTITY"),
        ("Neg-6 @1.10: float32[2] -> float32[2]", "ELEMENT_WISE_NEGATE"),
        ("ConstantOfShape-9 @1.9: int64[1]=2 -> float32[2]", ""),
        ("com.microsoft.dml:FusedAdd @1.12 activation=Relu: float32[2] float32[2] -> float32[2]", "ELEMENT_WISE_ADD1"),
        ("Relu-14: float32[0,3] -> float32[0,3]", ""),
    ],
)
def test_a_release_names_the_operators_of_its_build(text: str, expected: str) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        (
            "ConvTranspose-11 @1.13 output_shape=[4]: float32[1,1,3] float32[1,1,4] -> float32[1,1,4]",
            "StartPadding",
            [0, 1],
        ),
        (f"ConvTranspose-11 @1.13 {SAME}: float32[1,1,3] float32[1,1,4] -> float32[1,1,5]", "StartPadding", [0, 0]),
        (f"ConvTranspose-11 @1.12 {SAME}: float32[1,1,3] float32[1,1,4] -> float32[1,1,5]", "StartPadding", [0, 1]),
        ("Clip-12: int64[2] -> int64[2]", "Min", "0x8000000000000001"),
        ("Pad-13: float32[2] int64[2]=-1,1 -> float32[2]", "StartPadding", [0, 0, 0, 2**32 - 1]),
        ("Einsum-12 equation=ab,bc->ac: float32[2,3] float32[3,4] -> float32[2,4]", "TransB", "TRANSPOSE"),
        ("Tile-13: float32[1,3,1] int64[3]=1,2,1 -> float32[1,6,1]", "Repeats", [1, 1, 1, 2]),
        ("Trilu-14 upper=0: float32[3,3] int64[]=1 -> float32[3,3]", "DiagonalFillBegin", 2),
        (
            "com.microsoft.dml:DmlFusedAdd fused_activation=Elu fused_alpha=0.5: float32[2] float32[2] -> float32[2]",
            "FusedActivation",
            {"Type": "ACTIVATION_ELU", "Desc": {"Alpha": 0.5}},
        ),
        ("Resize-13 mode=linear: float32[1,2] _ float32[2]=1,2 -> float32[1,4]", "Scales", [1.0, 1.0, 1.0, 2.0]),
        ("MatMul-13: float32[2,3] float32[3] -> float32[2]", "BTensor", (0, 0, 0, 1)),
        ("QuantizeLinear-21 @1.24 axis=0: float32[3,3] float32[3] uint8[3] -> uint8[3,3]", "QuantizationTensors", None),
        (
            "QuantizeLinear-21 @1.25 axis=0: float32[3,3] float32[3] uint8[3] -> uint8[3,3]",
            "QuantizationTensors",
            (0, 0, 1, 0),
        ),
        ("Conv-11 @1.16: float32[1,1,3] float32[1,1,1]= -> float32[1,1,3]", "FilterTensor", True),
        ("Conv-11 @1.17: float32[1,1,3] float32[1,1,1]= -> float32[1,1,3]", "FilterTensor", False),
    ],
)
def test_a_field_is_described_as_the_provider_does(text: str, field: str, expected: Any) -> None:
    value = describe(kernel_node(text))[0].fields[field]
    if field.endswith(("Tensor", "Tensors")):
        value = value[0] if isinstance(value, list) else value
        value = value.is_owned if isinstance(expected, bool) else value.strides
    assert value == expected


REFUSED: Final = [
    "Trilu-14: float32[1,1,1,2,2] -> float32[1,1,1,2,2]",
    "Relu-14: float32[1,1,1,1,1,1,1,1,2] -> float32[1,1,1,1,1,1,1,1,2]",
    "QLinearConv-10: uint8[1,1,2,2,2] float32[] uint8[] uint8[1,1,1,1,1] -> uint8[1,1,2,2,2]",
    "DequantizeLinear-13 axis=1: int32[4] float32[1] int32[1] -> float32[4]",
    "QuantizeLinear-13 @1.16 axis=1: float32[2,3] float32[1] uint8[1] -> uint8[2,3]",
    "QuantizeLinear-13 @1.17: float32[2,3] float32[] -> uint8[2,3]",
    "ConvTranspose-11 auto_pad=SAME_UPPER strides=[2]: float32[1,1,3] float32[1,1,3] -> float32[1,1,6]",
    "Resize-18 keep_aspect_ratio_policy=not_larger: float32[1,2] _ _ int64[2]=1,5 -> float32[1,4]",
    "Conv-11 @1.26 strides=[0]: float32[1,1,3] float32[1,1,1] -> float32[1,1,3]",
    "MaxPool-12 @1.30 kernel_shape=[2,2,2] strides=[1,1]: float32[1,1,4,4] -> float32[1,1,3,3]",
    "com.microsoft:QLinearSigmoid: uint8[2,3] float32[1] uint8[] float32[] uint8[] -> uint8[2,3]",
    "com.microsoft:MultiHeadAttention num_heads=2: float32[2,3,8] _ _ _ _ float32[1,2,3,3] -> float32[2,3,8]",
    f"{GQA}: float16[1,3,64] _ _ _ _ int32[1] int32[]=3 -> float16[1,3,32]",
    f"{GQA} @1.30 causal=0: {QKV} _ _ int32[1] int32[]=3 -> float32[1,3,32]",
    "com.microsoft:FusedMatMul transBatchA=1: float32[2,3] float32[3,2] -> float32[2,2]",
    "com.microsoft.dml:DmlFusedConv fused_activation=PRelu: float32[1,1,3] float32[1,1,1] -> float32[1,1,3]",
    "ReverseSequence-10 batch_axis=1 time_axis=1: float32[2,3] int64[3] -> float32[2,3]",
    "Add-14: bfloat16[2] bfloat16[2] -> bfloat16[2]",
    "BitShift-11 direction=UP: uint8[2] uint8[2] -> uint8[2]",
    "com.microsoft:SkipLayerNormalization: float32[2,4,2,8] float32[2,4,2,8] float32[8]= -> float32[2,4,2,8]",
    "com.microsoft:BiasAdd: float32[2,4,8] float32[8]= float32[1,4,8] -> float32[2,4,8]",
    "com.microsoft:GroupNorm groups=3: float32[2,4,4,8] float32[8]= float32[8]= -> float32[2,4,4,8]",
    f"{NBITS}: float32[2,32] uint8[8,1,16] float32[8] _ _ float32[8] -> float32[2,8]",
    "com.microsoft:RotaryEmbedding: float32[1,4,32] int64[1,4] float32[8,8]= float32[8,16]= -> float32[1,4,32]",
    "com.microsoft:DynamicQuantizeMatMul: float32[4] uint8[4,3] float32[1]= uint8[1]= -> float32[3]",
]


@pytest.mark.parametrize("text", REFUSED)
def test_the_provider_refuses_a_node_before_directml_is_asked(text: str) -> None:
    with pytest.raises(ProviderRefusal):
        describe(kernel_node(text))
    assert described_node(NodePlace("0"), kernel_node(text)).outcome is DescriptionOutcome.REFUSED


OPEN: Final[dict[type[OpenDescription], dict[str, str]]] = {
    # what is not known of nodes, and their operators, as far as these are
    KnownAtRunTime: {
        "Softmax-13: float32[?,3] -> float32[?,3]": "ACTIVATION_SOFTMAX1",
        "Reshape-13: float32[2,3] int64[1] -> float32[6]": "",
        "Add-14: float32[2] float32[?] -> float32[?]": "ELEMENT_WISE_ADD",
        "Resize-13 @1.18: float32[2] _ float32[1] -> float32[4]": "RESAMPLE2",
        "ConcatFromSequence-11: float32[2] -> float32[2]": "JOIN",
        "com.microsoft:BiasGelu: float32[?] float32[2] -> float32[?]": "ELEMENT_WISE_ADD1 ACTIVATION_GELU",
        "com.microsoft.dml:DmlFusedSum fused_activation=Relu: float32[?] float32[2] -> float32[?]": "ELEMENT_WISE_ADD1",
    },
    NotDescribed: {
        "Einsum-12 @1.18 equation=ab,bc->ac: float32[2,3] float32[3,4] -> float32[2,4]": "",
        "STFT-17: float32[1,8,1] int64[] -> float32[1,1,1,1]": "",
        "Resize-11 @1.11: float32[1,2] _ float32[2]=1,2 -> float32[1,4]": "RESAMPLE1",
        "ReduceSum-11 @1.10: float32[2,3] -> float32[1,1]": "REDUCE",
        "Gather-11 @1.10: float32[2,3] int64[1] -> float32[1,3]": "GATHER",
        "MaxPool-12 @1.10 kernel_shape=[2]: float32[1,1,3] -> float32[1,1,2] int64[1,1,2]": "",
        "Cast-13 to=10: float32[4294967296] -> float16[4294967296]": "CAST",
        "Tile-13: int8[2,2147483648] int64[2]=1,2 -> int8[2,4294967296]": "TILE",
        "Transpose-13: float32[2,2,2147483648] -> float32[2147483648,2,2]": "ELEMENT_WISE_IDENTITY",
        "LRN-13 size=-1: float32[1,2,3,4] -> float32[1,2,3,4]": "LOCAL_RESPONSE_NORMALIZATION",
    },
}


@pytest.mark.parametrize(("error", "text"), [(error, text) for error, nodes in OPEN.items() for text in nodes])
def test_the_operators_of_an_open_description_are_known_by_name(error: type[OpenDescription], text: str) -> None:
    with pytest.raises(error) as caught:
        describe(kernel_node(text))
    assert [*caught.value.operators] == OPEN[error][text].split()


NOT_DESCRIBED: Final = {("", "GroupNorm"), ("", "STFT"), ("", "IsNan")}


@pytest.mark.parametrize("release", releases())
def test_every_registered_operator_is_described_and_no_name_exceeds_the_level_of_the_release(
    release: tuple[int, int],
) -> None:
    package = next((each for each in target_names() if each.startswith(f"onnxruntime-directml-1.{release[1]}.")), None)
    levels = {operator.name: operator.level for operator in operators().values()}
    for (domain, operator), kernels in directml_kernels(release).items():
        known = ("", fused_operator(operator)) if domain == FUSED_DOMAIN else (domain, operator)
        assert known in DESCRIPTIONS or known in NOT_DESCRIBED
        for kernel in kernels:
            for name in operators_of(domain, operator, kernel.since, release):
                assert package is None or levels[name] <= Target.parse(package).feature_level
    assert package or release > NEWEST_PROVIDER


@pytest.mark.long  # over onnx's node tests
@pytest.mark.parametrize("release", [each for each in releases() if described_alike(each) != each])
def test_releases_that_are_taken_to_create_the_same_operators_do(release: Version) -> None:
    rng, nodes = Random(0), [*described_nodes()]
    for node in (*nodes, *(varied(rng.choice(nodes), rng) for _ in range(500))):
        assert outcome(node._replace(release=release)) == outcome(node._replace(release=described_alike(release))), node


def outcome(node: KernelNode) -> tuple[str, Any]:
    found = described_node(NodePlace(""), node)
    return found.outcome, (found.reason, found.operators, found.descs)
