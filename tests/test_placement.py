"""The provider of ONNX Runtime that takes each node of a model, at a release."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, inliner, version_converter

from dml_tile.back_ends import kernels
from dml_tile.back_ends.kernels import cpu_kernels, directml_kernels, limits_at, releases, version_of, version_text
from dml_tile.back_ends.placement import Placement, Reason
from dml_tile.back_ends.queries import QUERIES
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import NEWEST_PROVIDER, Target
from dml_tile.errors import InputError
from dml_tile.readers.onnx import functions
from dml_tile.text import MAX_QUOTED
from tests.helpers.onnx_graphs import (
    computed,
    function,
    if_text,
    model,
    node,
    placed,
    placed_model,
    placements,
    tensor,
    typed,
)
from tests.helpers.recorded_answers import rows_of

F, H, BF = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
I32, I64, U8, BOOL, STRING = (
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.BOOL,
    TensorProto.STRING,
)
MICROSOFT: Final = "com.microsoft"


def target(release: str, suffix: str = "") -> str:
    package = "directml" if version_of(release) <= NEWEST_PROVIDER else "node"
    return f"onnxruntime-{package}-{release}{suffix}"


def of(
    operator: str,
    *types: int | None,
    opset: int = 13,
    domain: str = "",
    outputs: int = 1,
    rank: int | None = None,
    **attributes: Any,
) -> ModelProto:
    """Return a model of one node, whose inputs have these types; None leaves an input out."""
    names = [f"x{i}" if type_ is not None else "" for i, type_ in enumerate(types)]
    made = node(operator, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    shape = None if rank is None else [f"N{i}" for i in range(rank)]
    inputs = [typed(f"x{i}", shape, type_) for i, type_ in enumerate(types) if type_ is not None]
    return of_nodes(made, inputs=inputs, opset=opset, domains={domain: 1} if domain else None)


def of_nodes(*nodes: NodeProto | str, **fields: Any) -> ModelProto:
    made = model(*nodes, ir_version=7, **fields)
    del made.graph.output[:]
    made.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in made.graph.node[-1].output[:1])
    return made


def words(made: ModelProto, *names: str) -> list[str]:
    """Return the placements of a model's nodes at these targets, node by node."""
    return ["/".join(reason.placement for _, reason in placements(made, name)) for name in names]


def rule(made: ModelProto, name: str) -> str:
    """Return the rule that keeps a model's last node from DirectML; its placement if there is none."""
    reason = placements(made, name)[-1][1]
    return reason.rule or reason.placement


SHAPE_THEN_TILE: Final = of_nodes(
    "s = Shape(x); y = Tile(s, r)", inputs=[typed("x", ["N", 3])], initializer=[tensor("r", [2])]
)
SHAPE_OF_STATIC: Final = of_nodes(
    "s = Shape(x); y = Tile(s, r)", inputs=[typed("x", [2, 3])], initializer=[tensor("r", [2])]
)
NBITS: Final[dict[str, Any]] = {"domain": MICROSOFT, "opset": 17, "N": 4, "bits": 4, "block_size": 32}
MASKED: Final[dict[str, Any]] = {"domain": MICROSOFT, "opset": 17, "num_heads": 2}
ROWS: Final = {
    # the placements of the nodes, each from a release on
    "Tile-13 float32": (of("Tile", F, I64), "1.9 cpu, 1.10 directml"),
    "Tile-6 int64": (of("Tile", I64, I64, opset=12), "1.9 cpu, 1.10 directml"),
    "Shape, then Tile": (SHAPE_THEN_TILE, "1.9 cpu/cpu, 1.10 cpu/directml, 1.14 directml/cpu"),
    "Shape, what does nothing, then Tile": (
        of_nodes(
            "s = Shape(x); a = Identity(s); y = Tile(a, r)",
            inputs=[typed("x", ["N", 3])],
            initializer=[tensor("r", [2])],
        ),
        "1.9 cpu/gone/cpu, 1.10 cpu/gone/directml, 1.14 directml/gone/cpu",
    ),
    "two equal Shapes, then a Tile of each": (
        of_nodes(
            "s = Shape(x); t = Shape(x); y = Tile(s, r); z = Tile(t, r2); k = Sub(y, z)",
            inputs=[typed("x", ["N", 3])],
            initializer=[tensor("r", [2]), tensor("r2", [3])],
        ),
        "1.9 cpu/gone/cpu/cpu/cpu, 1.10 cpu/gone/directml/directml/directml, 1.14 directml/gone/cpu/cpu/cpu",
    ),
    "Shape of a static shape, then Tile": (SHAPE_OF_STATIC, "1.9 gone/gone"),
    "DecoderMasked": (of("DecoderMaskedMultiHeadAttention", F, F, F, **MASKED), "1.9 none, 1.20 cpu"),
    "MatMul-13 of 5 dimensions": (of("MatMul", F, F, rank=5), "1.9 cpu, 1.10 directml"),
    "Resize-13, mode cubic": (of("Resize", F, None, F, mode="cubic"), "1.9 cpu"),
    "Resize-13, mode linear": (of("Resize", F, None, F, mode="linear"), "1.9 cpu, 1.11 directml"),
    "CumSum-14 int32": (of("CumSum", I32, I64, opset=14), "1.9 cpu, 1.12 directml"),
    "Trilu-14": (of("Trilu", F, opset=14), "1.9 cpu, 1.12 directml"),
    "Pad-19": (of("Pad", F, I64, opset=19), "1.9 none, 1.16 cpu, 1.19 directml"),
    "Conv-22": (of("Conv", F, F, opset=22), "1.9 none, 1.21 cpu"),
    "Add-14 bfloat16": (of("Add", BF, BF, opset=14), "1.9 none"),
    "Identity-14": (of("Identity", F, opset=14), "1.9 cpu, 1.12 directml, 1.13 none, 1.14 directml"),
    "MatMulNBits, K=64": (of("MatMulNBits", F, U8, F, **NBITS, K=64), "1.9 none, 1.16 cpu, 1.18 directml"),
    "MatMulNBits, K=48": (of("MatMulNBits", F, U8, F, **NBITS, K=48), "1.9 none, 1.16 cpu"),
}


@pytest.mark.parametrize("row", ROWS)
def test_nodes_are_placed_as_the_sources_of_each_release_say(row: str) -> None:
    made, expected = ROWS[row]
    changes = dict(change.split() for change in expected.split(", "))
    placement = ""
    for release in map(version_text, releases()):
        placement = changes.pop(release, placement)
        assert words(made, target(release)) == [placement], release
    assert not changes


LACKS: Final = "with onnx.version_converter, which lacks some operators"
WRAP: Final = of("Pad", F, I64, opset=19, mode="wrap")
DIV_1: Final = of_nodes("y = Div(x, x)", opset=1)
EXPORT: Final = (
    "export at opset {} or below, or convert the file to it with onnx.version_converter, which lacks some operators"
)
# a model, a release, and the advice on what keeps the model from loading, or its last node from DirectML
ADVICE: Final = [
    # Tile-6 of 1.9 has no int64; the CPU provider has strings from 1.15 on, and no provider bfloat16
    (of("Tile", I64, I64), "1.9", "use onnxruntime 1.10 or later"),
    (of("Tile", I64, I64, opset=12), "1.9", "use onnxruntime 1.10 or later"),
    (of("Tile", F, I64), "1.9", "use onnxruntime 1.10 or later, or export at opset 12 or below"),
    # it has versions 9, 14 and 15, of which 1.9 registers the first
    (
        of("BatchNormalization", F, F, F, F, F, opset=15),
        "1.9",
        "use onnxruntime 1.12 or later, or export at opset 13 or below",
    ),
    (of("Tile", STRING, I64), "1.9", "use onnxruntime 1.15 or later, whose CPU provider has it"),
    (of("Tile", BF, I64), "1.9", "Cast to float32 before it and back to bfloat16 behind it, which is exact"),
    (of("Cast", STRING, opset=13, to=F), "1.9", None),
    (of("Div", I64, I64, opset=14), "1.14", "use onnxruntime 1.16 or later"),
    (of("Identity", F, opset=14), "1.13", "use onnxruntime 1.14 or later"),
    (
        of("DecoderMaskedMultiHeadAttention", F, F, F, **MASKED),
        "1.18",
        "use onnxruntime 1.20 or later, whose CPU provider has it",
    ),
    (of("LSTM", F, F, F, opset=14, hidden_size=2, layout=1), "1.24", "export with layout 0"),
    (of("Conv", F, F, opset=22, rank=4), "1.24", EXPORT.format(21)),
    (of("Relu", F, opset=22), "1.18", EXPORT.format(21)),
    (DIV_1, "1.24", f"convert the file to opset 7 or later {LACKS}"),
    (DIV_1, "1.9", f"convert the file to opset 7 to 12 {LACKS}"),
    # no older opset has wrap, which onnx's converter leaves as it is; no release has a kernel of Gelu or Attention
    (WRAP, "1.16", "use onnxruntime 1.19 or later"),
    (WRAP, "1.9", "use onnxruntime 1.15 or later"),
    (of("Resize", F, None, F, opset=18, antialias=1), "1.17", "use onnxruntime 1.19 or later"),
    (
        of("Resize", F, None, F, opset=18, antialias=0),
        "1.17",
        f"use onnxruntime 1.19 or later, or {EXPORT.format(17)}",
    ),
    (of("Attention", F, F, F, opset=23, rank=4), "1.21", "use onnxruntime 1.23 or later"),
    (of("Gelu", F, opset=20, rank=2), "1.24", "export at opset 19 or below: the exporter then writes its parts"),
    (of_nodes("y = Relu(x)", domains={"ai.onnx.ml": 6}), "1.24", "remove the import of ai.onnx.ml, which no node uses"),
    (
        of_nodes(node("Scaler", ["x"], ["y"], domain="ai.onnx.ml"), domains={"ai.onnx.ml": 6}),
        "1.24",
        "export at opset 5 of ai.onnx.ml or below",
    ),
    (model("y = Relu(x)", ir_version=11), "1.18", "model.ir_version = 10"),
]


@pytest.mark.parametrize(("made", "release", "advice"), ADVICE)
def test_what_is_advised_rids_of_the_finding(made: ModelProto, release: str, advice: str | None) -> None:
    def first(made: ModelProto, release: str) -> Reason:
        errors, found = placed(made, target(release))
        return errors[0] if errors else found[-1][1]

    reason = first(made, release)
    assert reason.suggestion == advice
    opset = int(next(iter(re.findall(r"opset (\d+)", advice or "")), 0))
    for way in advice.split(", or ") if advice else []:
        assert first(*advised(made, release, way, opset))[:3] != reason[:3], way


def advised(made: ModelProto, release: str, way: str, opset: int) -> tuple[ModelProto, str]:
    """Return a model and a release that follow a way of an advice, which names an opset or none."""
    made = deepcopy(made)
    if way.startswith("use onnxruntime"):
        return made, way.split()[2]
    if "the exporter then writes its parts" in way:
        made = inliner.inline_selected_functions(made, [("", made.graph.node[0].op_type)], inline_schema_functions=True)
        made.opset_import[0].version = opset
    elif "version_converter" in way:
        made = version_converter.convert_version(made, opset)
    elif way.startswith("export at opset"):
        made.opset_import[" of " in way].version = opset
    elif way.startswith("remove the import"):
        del made.opset_import[1]
    elif way.startswith("model.ir_version"):
        made.ir_version = int(way.split()[-1])
    elif way.startswith("Cast to float32"):
        made.graph.input[0].type.tensor_type.elem_type = F
    else:
        assert way == "export with layout 0"
        del made.graph.node[0].attribute[1:]
    return made, release


# each query: a node that it refuses, one that it takes, both of operators that are registered at 1.24
QUERY_CASES: Final = {
    "MaxPool": (
        of("MaxPool", F, opset=12, kernel_shape=[2], storage_order=1),
        of("MaxPool", F, opset=12, kernel_shape=[2]),
        "storage_order is 1",
    ),
    "Resize": (
        of("Resize", F, None, F, exclude_outside=1),
        of("Resize", F, None, F, extrapolation_value=0.0),
        "exclude_outside is 1",
    ),
    "Scatter": (
        of("ScatterND", F, I64, F, opset=16, reduction="add"),
        of("ScatterND", F, I64, F, opset=16, reduction="none"),
        "reduction is add",
    ),
    "EinSum": (
        of("Einsum", F, F, equation="...i,i->i"),
        of("Einsum", F, F, equation="ij,jk->ik"),
        "equation is ...i,i->i, with an ellipsis",
    ),
    "RecurrentNeuralNetwork": (
        of("GRU", F, F, F, opset=14, hidden_size=2, layout=1),
        of("GRU", F, F, F, opset=14, hidden_size=2),
        "layout is 1",
    ),
    "BatchNormalization": (
        of("BatchNormalization", F, F, F, F, F, opset=14, training_mode=1, outputs=3),
        of("BatchNormalization", F, F, F, F, F, opset=14),
        "training_mode is 1",
    ),
    "Pad": (of("Pad", F, opset=10, pads=[0, -1]), of("Pad", F, opset=10, pads=[0, 1]), "pads[1] is -1"),
    "LayerNormalization": (
        of("LayerNormalization", F, F, F, opset=17, outputs=2),
        of("LayerNormalization", F, F, F, opset=17),
        "there are 2 outputs; 1 is taken",
    ),
    "SkipLayerNormalization": (
        of("SkipLayerNormalization", F, F, F, domain=MICROSOFT, outputs=2),
        of("SkipLayerNormalization", F, F, F, domain=MICROSOFT),
        "output 1 is asked for",
    ),
    "QLinearSigmoid": (
        of("QLinearSigmoid", U8, F, U8, F, domain=MICROSOFT),
        of("QLinearSigmoid", U8, F, U8, F, U8, domain=MICROSOFT),
        "it has 4 inputs, not 5",
    ),
    "Attention": (
        of("Attention", F, F, F, None, F, domain=MICROSOFT, num_heads=2),
        of("Attention", F, F, F, domain=MICROSOFT, num_heads=2, qkv_hidden_sizes=[2, 2, 2]),
        "past is given",
    ),
    "QAttention": (
        of("QAttention", U8, U8, F, F, F, I32, U8, U8, F, domain=MICROSOFT, num_heads=2, unidirectional=1),
        of("QAttention", U8, U8, F, F, F, I32, U8, U8, domain=MICROSOFT, num_heads=2, unidirectional=1),
        "unidirectional is 1, and past is given",
    ),
    "MatMulNBits": (
        ROWS["MatMulNBits, K=48"][0],
        ROWS["MatMulNBits, K=64"][0],
        "K is 48, no multiple of block_size 32",
    ),
}


def test_there_is_a_case_each_way_for_each_query_and_a_query_for_each_name_in_the_table() -> None:
    kernels = (kernel for release in releases() for rows in directml_kernels(release).values() for kernel in rows)
    assert QUERY_CASES.keys() == QUERIES.keys() == {kernel.query for kernel in kernels if kernel.query}


@pytest.mark.parametrize("query", QUERY_CASES)
def test_a_query_refuses_a_node_by_what_it_names(query: str) -> None:
    refused, taken, why = QUERY_CASES[query]
    (_, reason), *_ = placements(refused, target("1.24"))
    assert (reason.rule or reason.placement) in ("ORT-CPU-query", "ORT-NODE-no-kernel", "ORT-NODE-kernel")
    assert reason.text.startswith(f"DirectML does not take it: {why}")
    assert words(taken, target("1.24")) == ["directml"]


@pytest.mark.parametrize(
    ("equation", "first"),
    [
        *((each, "1.9") for each in ("ij->ji", "ij->", "ij->i", "ij->j", "ij,ij->ij", "ij,jk->ik", "ij,jk", "i,i->")),
        *((each, "1.9") for each in ("bji,bjk->bik", "abij,abkj->abik", " i j , k j -> i k ")),
        *((each, "1.14") for each in ("aibj,ajbk->aibk", "ajbi,ajbk->aibk", "aibj,akbj->aibk")),
        ("i,j->ij", "1.16"),
        *((each, "1.19") for each in ("ijk->ij", "ii->i", "ij,ji->ij", "bij,bjk->bki")),
    ],
)
def test_einsum_is_taken_by_its_equation_up_to_1_18(equation: str, first: str) -> None:
    labels = equation.replace(" ", "").split("->")[0].split(",")
    made = of("Einsum", *[F] * len(labels), equation=equation)
    found = {release: placements(made, target(release))[0][1].placement for release in ("1.9", "1.14", "1.16", "1.19")}
    number = float(first.partition(".")[2])
    assert {each: word == "directml" for each, word in found.items()} == {
        each: float(each.partition(".")[2]) >= number for each in found
    }


def test_an_unknown_character_in_an_equation_throws() -> None:
    (_, reason), *_ = placements(of("Einsum", F, equation="i*->i"), target("1.24"))
    assert (reason.placement, reason.rule) == ("none", "ORT-NODE-query")


@pytest.mark.parametrize("equation", ["i*->i", "...i->i", "i,i,i->i", "ij,jk,->ik"])
def test_a_long_equation_is_cut_short_in_a_reason(equation: str) -> None:
    long = equation.replace("i", "i" * 200_000)
    (_, reason), *_ = placements(of("Einsum", *[F] * (1 + equation.count(",")), equation=long), target("1.18"))
    assert reason.text.partition("equation is ")[2].startswith(f"{long[:MAX_QUOTED]}… (")
    assert len(reason.text) < 2 * MAX_QUOTED


def test_onnx_infers_no_type_of_an_equation_with_an_unknown_character(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred: list[NodeProto] = []

    def infer(made: ModelProto, **options: Any) -> ModelProto:
        inferred.extend(each for each in made.graph.node if each.domain in ("", "ai.onnx"))
        return made

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", infer)
    monkeypatch.setattr(
        onnx.shape_inference, "infer_node_outputs", lambda schema, each, *_, **__: inferred.append(each)
    )
    for equation, count in (("i*->i", 0), ("i->i", 2), ("...ij , jk -> ...ik", 2)):
        inferred.clear()
        placements(of("Einsum", F, F, equation=equation), target("1.24"))
        assert len(inferred) == count, equation


ATTENTION: Final[dict[str, Any]] = {"domain": MICROSOFT, "num_heads": 2}


@pytest.mark.parametrize(
    ("made", "at_1_14", "at_1_15"),
    [
        (of("Attention", F, F, F, None, None, F, **ATTENTION), False, True),
        (of("Attention", F, F, F, **ATTENTION, qkv_hidden_sizes=[2, 2, 2]), False, True),
        (of("Attention", F, F, F, **ATTENTION, outputs=2), False, False),
        (of("Attention", F, F, F, **ATTENTION, do_rotary=1), True, False),
        (of("Attention", F, F, F, **ATTENTION, unidirectional=1), False, False),
        (of("Attention", F, F, F, **ATTENTION), True, True),
    ],
)
def test_attention_is_asked_for_other_things_from_1_15_on(made: ModelProto, at_1_14: bool, at_1_15: bool) -> None:
    found = words(made, target("1.14"), target("1.15"))
    assert [word == "directml" for word in found] == [at_1_14, at_1_15]


REASONS: Final = {
    # a node with the reason at a target, and one without it
    "ORT-CPU-unregistered": (of("NonMaxSuppression", F, F, opset=11), of("Relu", F), "1.24"),
    "ORT-CPU-type": (of("Tile", STRING, I64), of("Tile", F, I64), "1.24"),
    "ORT-CPU-device-type": (
        of("Tile", TensorProto.DOUBLE, I64),
        of("Tile", F, I64),
        "1.24.4+no-double-precision",
    ),
    "ORT-CPU-preferred": (SHAPE_THEN_TILE, of("Tile", I64, I64), "1.24"),
    "ORT-CPU-control-flow": (
        of_nodes(
            "[l] y = Loop(m, c, x)<body = body (int64 i, bool k, float[2, 3] a) => (bool k2, float[2, 3] b)"
            " { k2 = Identity(k); b = Neg(a) }>",
            inputs=[typed("x", [2, 3]), typed("m", [], I64), typed("c", [], BOOL)],
        ),
        of("Relu", F),
        "1.24",
    ),
    "ORT-NODE-no-kernel": (of("Add", BF, BF, opset=14), of("Add", F, F, opset=14), "1.24"),
    "ORT-NODE-look-up": (of("Identity", F, opset=14), of("Identity", F, opset=13), "1.13"),
    "ORT-NODE-domain": (of("Mine", F, domain="own"), of("Relu", F), "1.24"),
    "ORT-MODEL-operator": (of("Mine", F), of("Relu", F), "1.24"),
    "ORT-UNKNOWN-type": (
        of_nodes("a = own.Mine(x); y = Neg(a)", inputs=[typed("x", [2, 3])], domains={"own": 1}),
        of("Neg", F),
        "1.24",
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_is_given_where_it_holds_and_only_there(reason: str) -> None:
    with_it, without, release = REASONS[reason]
    assert reason in {found.rule for _, found in placements(with_it, target(release))}
    assert words(without, target(release)) == ["directml"]


C: Final = typed("c", [], BOOL)
NEGATIVE: Final = of_nodes("y = Add(x, w)", inputs=[typed("x", [2])], initializer=[tensor("w", [1.0], "float32")])
NEGATIVE.graph.initializer[0].dims[0] = -1
EMPTY: Final = model(ir_version=7)
del EMPTY.graph.output[:]
UNTYPED: Final = of_nodes("y = Neg(x)", inputs=[typed("x", [2]), typed("unused", [2], 0)])
LOOP: Final = (
    "y, z = Loop(n, c, x, x)<body = once (int64 i, bool d, float[] u, float[] {}) => (bool e, float[] v, float[] v) "
    "{{ e = Identity(d) v = Neg(u) }}>"
)
ROUNDS: Final = [typed("x", [2]), typed("n", [], I64), C]
TWO: Final = node(
    "If",
    ["c"],
    ["y", "z"],
    **{attribute.name: attribute.g for attribute in computed(if_text("t = Neg(x)"))[0].attribute},
)
NEG: Final = "Negated (a) => (b) { b = Neg(a) }"
NEGATED: Final[dict[str, Any]] = {"functions": [function(NEG)], "domains": {"own": 1}}


def with_data(*floats: float, used: bool = True) -> ModelProto:
    made = TensorProto(name="w", data_type=F, dims=[2], float_data=floats)
    return of_nodes("y = Add(x, w)" if used else "y = Neg(x)", inputs=[typed("x", [2])], initializer=[made])


LEFT_OUT: Final = {name: node("TopK", ["x", "k"], names) for name, names in (("yes", ["", "i"]), ("no", ["y", "i"]))}
TOP: Final[dict[str, Any]] = {"inputs": [typed("x", [2, 3])], "initializer": [tensor("k", [1])]}
WRONG: Final = {
    # a model that no release loads, one that each does, and what is said of the first
    "too few inputs": (of("Add", F), of("Add", F, F), "it has 1 input, not 2"),
    "too many inputs": (of("Clip", F, F, F, F), of("Clip", F, F, F), "it has 4 inputs, not 1 to 3"),
    "no input": (of("Sum"), of("Sum", F), "it has 0 inputs, not 1 or more"),
    "an input left out": (of("Add", F, None), of("Clip", F, None, F), "its input B is left out"),
    "too many outputs": (of("Relu", F, outputs=2), of("Relu", F), "it has 2 outputs, not 1"),
    "an output before a Shape": (
        of_nodes("a, b = Cast<to=7>(x); y = Shape(a)", opset=15),
        of_nodes("a = Cast<to=7>(x); y = Shape(a)", opset=15),
        "it has 2 outputs, not 1",
    ),
    "an output left out": (
        of_nodes(LEFT_OUT["yes"], **TOP),
        of_nodes(LEFT_OUT["no"], **TOP),
        "its output Values is left out",
    ),
    "an attribute unknown": (of("Relu", F, size=1), of("Relu", F, __size=1), "it has no attribute size"),
    "an attribute missing": (of("Concat", F), of("Concat", F, axis=0), "its attribute axis is missing"),
    "an attribute's type": (
        of("Pad", F, opset=10, pads="x"),
        of("Pad", F, opset=10, pads=[0, 0]),
        "its attribute pads is of STRING, not of INTS",
    ),
    "an attribute's type, of com.microsoft": (
        of("MatMulNBits", F, U8, F, domain=MICROSOFT, K="x"),
        of("MatMulNBits", F, U8, F, domain=MICROSOFT, K=64),
        "its attribute K is of STRING, not of INT",
    ),
    "a type": (of("Relu", BOOL), of("Relu", F), "its input X is of bool, which it does not take"),
    "two types": (of("Add", F, I64), of("Add", F, F), "its input B is of int64, and another of float"),
    "two types of any number": (
        of("Concat", F, F, I64, axis=0),
        of("Concat", F, F, F, axis=0),
        "its input inputs is of int64, and another of float",
    ),
    "an output's stated type": (
        of_nodes("a = Neg(x); y = Abs(a)", value_info=[typed("a", [2, 3], H)]),
        of_nodes("a = Neg(x); y = Abs(a)", value_info=[typed("a", [2, 3])]),
        "its output Y is of float16, and another of float",
    ),
    "a cast's stated type": (
        of_nodes("a = Cast<to=10>(x); y = Abs(a)", value_info=[typed("a", [2, 3])]),
        of_nodes("a = Cast<to=10>(x); y = Abs(a)", value_info=[typed("a", [2, 3], H)]),
        "its output is of float, and its attribute to is float16",
    ),
    "an output's only type": (
        of_nodes("a = Shape(x); y = Abs(a)", value_info=[typed("a", [2], H)]),
        of_nodes("a = Shape(x); y = Abs(a)", value_info=[typed("a", [2], I64)]),
        "its output shape is of float16, which it does not make",
    ),
    "in a graph inside": (
        of_nodes(if_text("t = Add(x)"), inputs=[typed("x", [2]), C]),
        of_nodes(if_text("t = Neg(x)"), inputs=[typed("x", [2]), C]),
        "it has 1 input, not 2",
    ),
    "a constant's": (of_nodes("y = Neg<size=1>(k)", **TOP), of_nodes("y = Neg(k)", **TOP), "it has no attribute size"),
    "an input that nothing makes": (
        of_nodes("y = Add(x, z)"),
        of_nodes("y = Add(x, x)"),
        "nothing before it makes its input z",
    ),
    "a circle": (
        of_nodes("a = Add(x, y); y = Neg(a)"),
        of_nodes("y = Neg(a); a = Add(x, x)"),
        "nothing before it makes its input y",
    ),
    "the order of a graph inside": (
        of_nodes(if_text("t = Neg(q) q = Abs(x)"), inputs=[typed("x", [2]), C]),
        of_nodes(if_text("t = Neg(q)"), "q = Abs(x); y = Add(q, w)", inputs=[typed("x", [2]), C]),
        "nothing before it makes its input q",
    ),
    "a name for two values": (
        of_nodes("x = Neg(x); y = Neg(x)"),
        of_nodes("y = Neg(x)"),
        "its output x has the name of an earlier value",
    ),
    "an output that nothing makes": (
        model("z = Neg(x)", ir_version=7),
        model("y = Neg(x)", ir_version=7),
        "the output y is no value of the graph",
    ),
    "an output of a graph inside": (
        of_nodes(if_text("a = Neg(x)"), inputs=[typed("x", [2]), C]),
        of_nodes(if_text("t = Neg(x)"), inputs=[typed("x", [2]), C]),
        "the output t is no value of the graph",
    ),
    "no graph": (EMPTY, model("y = Neg(x)", ir_version=7), "the graph has neither nodes nor outputs"),
    "a size": (NEGATIVE, of("Add", F, F), "the initialiser w has a negative size"),
    "too few data": (
        with_data(1),
        with_data(1, 2),
        "the data of 'w' are no 2 elements of FLOAT, which its shape [2] and type say",
    ),
    "too many data": (
        with_data(1, 2, 3),
        with_data(1, used=False),
        "the data of 'w' are no 2 elements of FLOAT, which its shape [2] and type say",
    ),
    "an initialiser's type": (
        of_nodes("y = Neg(x)", initializer=[TensorProto(name="w", dims=[0])]),
        of_nodes("y = Neg(x)", initializer=[TensorProto(name="w", dims=[0], data_type=F)]),
        "the initialiser w has no type",
    ),
    "an input's type": (UNTYPED, of_nodes("y = Neg(x)"), "the input unused has no type"),
    "two inputs": (
        of_nodes("y = Neg(x)", inputs=[typed("x", [2]), typed("x", [2])]),
        of_nodes("y = Neg(x)", inputs=[typed("x", [2]), typed("z", [2])]),
        "two inputs have the name x",
    ),
    "two inputs of a Loop's graph": (
        of_nodes(LOOP.format("u"), inputs=ROUNDS),
        of_nodes(LOOP.format("w"), inputs=ROUNDS),
        "two inputs have the name u",
    ),
    "two nodes": (
        of_nodes("[n] k = Neg(x); [n] y = Neg(k)"),
        of_nodes("[n] k = Constant<value = float {2.0}>(); [n] y = Add(x, k)"),
        "Neg 'n' has the name of another node",
    ),
    "a function's domain": (
        of_nodes("[call] y = own.Negated(x)", functions=[function(NEG)]),
        of_nodes("[call] y = own.Negated(x)", **NEGATED),
        "own/Negated 'call' is of a domain that is not imported where it stands",
    ),
    "a domain in a function": (
        of_nodes(
            "y = own.Split(x)",
            functions=[function("Split (a) => (b) { [gelu] b = com.microsoft.Gelu(a) }")],
            domains={"own": 1, MICROSOFT: 1},
        ),
        of_nodes("y = com.microsoft.Gelu(x)", domains={"own": 1, MICROSOFT: 1}),
        "com.microsoft/Gelu 'gelu' is of a domain that is not imported where it stands",
    ),
    "a call's outputs": (
        of_nodes("[call] y, z = own.Negated(x)", **NEGATED),
        of_nodes("y = own.Negated(x)", **NEGATED),
        "own/Negated 'call' has more inputs, or other outputs, than its function",
    ),
    "sizes that do not fit": (
        of_nodes("y = Add(x, z)", inputs=[typed("x", [2, 3]), typed("z", [2])]),
        of_nodes("y = Neg(x)", inputs=[typed("x", [2])], value_info=[typed("y", [7])]),
        "onnx's inference fails at Add 'Add->y': Incompatible dimensions",
    ),
    "sizes inside that do not fit": (
        of_nodes(if_text("t = Add(x, z)"), inputs=[typed("x", [2, 3]), typed("z", [2]), C]),
        of_nodes(if_text("t = Add(x, z)"), inputs=[typed("x", [2, 3]), typed("z", [3]), C]),
        "onnx's inference fails at Add 'Add->t': Incompatible dimensions",
    ),
    "an If's outputs": (
        of_nodes(TWO, inputs=[typed("x", [2]), C]),
        of_nodes(if_text("t = Neg(x)"), inputs=[typed("x", [2]), C]),
        "If '' has other outputs than its graphs",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_model_that_is_no_sound_onnx_does_not_load(case: str) -> None:
    wrong, sound, expected = WRONG[case]
    for name in map(target, ("1.9", "1.24")):
        of_model, nodes = placed(wrong, name)
        said = [*of_model, *(reason for _, reason in nodes if reason.placement == "none")]
        assert expected in {reason.text for reason in said}, said
        assert {reason.rule for reason in said} <= {"ORT-MODEL-node", "ORT-MODEL-graph"}
        of_model, nodes = placed(sound, name)
        assert not of_model
        assert {reason.placement for _, reason in nodes} <= {"directml", "cpu", "gone"} or "com" in case


@pytest.mark.parametrize(
    ("text", "opset"), [("y = MeanVarianceNormalization(x)", 13), ("y = GreaterOrEqual(x, z)", 12)]
)
def test_a_function_of_onnx_is_not_inferred_from_its_nodes_as_by_onnx(text: str, opset: int) -> None:
    of_model, _ = placed(
        of_nodes(text, inputs=[typed("x", [1, 2, 3, 4]), typed("z", [3])], opset=opset), target("1.24")
    )
    assert not of_model


TWICE: Final = node("LeakyRelu", ["x"], ["y"], alpha=0.5)
TWICE.attribute.append(TWICE.attribute[0])


@pytest.mark.parametrize(
    ("made", "first", "expected"),
    [
        (of_nodes(TWICE), "1.18", "LeakyRelu '' has an attribute twice"),
        (
            of_nodes("k, z = Constant<value = float {2.0}>(); y = Add(x, k)"),
            "1.19",
            "Constant '' has more or fewer outputs than one",
        ),
    ],
    ids=["an attribute twice", "a Constant's outputs"],
)
def test_some_unsound_models_do_not_load_from_a_release_on(made: ModelProto, first: str, expected: str) -> None:
    for release in map(version_text, releases()):
        of_model, _ = placed(made, target(release))
        assert [reason.text for reason in of_model] == [expected] * (version_of(release) >= version_of(first)), release


def test_an_unknown_attribute_of_a_layer_normalization_is_loaded() -> None:
    assert words(of("LayerNormalization", F, F, opset=17, size=1), target("1.24")) == ["directml"]


def test_nodes_are_placed_in_the_order_in_which_they_can_run_and_keep_their_places() -> None:
    made = of_nodes("y = Tile(h, r); h = Cast<to=10>(x); r = [1, 2]; z = Neg(y)")
    found = [
        (each.place.pointer, each.place.operator, str(reason.placement))
        for each, reason in placements(made, target("1.24"))
    ]
    assert sorted(found) == [
        ("0", "Tile", "directml"),
        ("1", "Cast", "directml"),
        ("2", "Constant", "gone"),
        ("3", "Neg", "directml"),
    ]
    assert [pointer for pointer, _, _ in found].index("0") > [pointer for pointer, _, _ in found].index("1")
    in_order = [
        node.place.pointer for node, _ in placements(of_nodes("a = Neg(x); b = Abs(x); y = Add(a, b)"), target("1.24"))
    ]
    assert in_order == ["0", "1", "2"]


def test_a_deprecated_operator_is_none_but_for_one_that_is_loaded_by_its_function() -> None:
    assert rule(of("Scatter", F, I64, F, opset=11), target("1.24")) == "ORT-MODEL-operator"
    assert rule(of("Scatter", F, I64, F, opset=10), target("1.24")) == "directml"
    for opset, expected in ((18, "ORT-UNKNOWN-opset"), (20, "ORT-UNKNOWN-opset"), (17, "ORT-MODEL-operator")):
        made = of("GroupNormalization", F, F, F, opset=opset, num_groups=2)
        assert rule(made, target("1.24")) == expected


def test_a_constant_is_its_first_attribute() -> None:
    constant = node("Constant", [], ["k"], value_float=1.0, value_int=3)
    assert words(of_nodes(constant, "y = Add(x, k)"), target("1.24")) == ["gone/directml"]
    del constant.attribute[:]
    assert words(of_nodes(constant, "y = Add(x, k)"), target("1.24"))[0].startswith("none/")


def test_loop_and_scan_are_the_cpu_providers_and_the_nodes_inside_are_placed_like_others() -> None:
    made, _, _ = REASONS["ORT-CPU-control-flow"]
    found = {node.place.pointer: reason for node, reason in placements(made, target("1.24"))}
    assert [found[each].placement for each in ("0", "0/body/0", "0/body/1")] == ["cpu", "directml", "directml"]
    assert found["0"].rule == "ORT-CPU-control-flow"


def test_a_sequence_stays_one_in_a_loop_whose_other_values_grow() -> None:
    body = "body = b (int64 i, bool d, float[2] a, seq(float[]) s) => (bool c, float[] b, seq(float[]) t)"
    grown = "c = Identity(d) b = Concat<axis=0>(a, a) t = SequenceInsert(s, a)"
    loop = f"e = SequenceEmpty(); n = 3; go = true; o, p = Loop(n, go, x, e)<{body} {{ {grown} }}>"
    made = of_nodes(f"{loop}; y = SequenceLength(p)", inputs=[typed("x", [2])], opset=17)
    found = {node.place.operator: reason.placement for node, reason in placements(made, target("1.24"))}
    assert (found["SequenceInsert"], found["SequenceLength"]) == ("directml", "directml")


def test_a_model_is_not_loaded_by_a_release_below_its_opset_or_ir_version() -> None:
    made = of("Relu", F, opset=25)
    assert [bool(placed(made, target(each))[0]) for each in ("1.21", "1.23", "1.24")] == [True, True, False]
    assert [bool(placed(of("Relu", F, opset=each), target("1.23"))[0]) for each in (23, 24)] == [False, True]
    (error,), ((_, reason),) = placed(made, target("1.21"))
    assert (error.rule, reason.placement) == ("ORT-MODEL-opset", "none")
    assert error.text == "opset 25: onnxruntime 1.21 loads up to 22"
    made = of("Relu", F)
    made.ir_version = 10
    assert [each.rule for each in placed(made, target("1.17"))[0]] == ["ORT-MODEL-ir-version"]
    assert not placed(made, target("1.18"))[0]


@pytest.mark.parametrize(("patch", "words"), [("1.14.0", "seven sequence kernels"), ("1.16.1", "RotaryEmbedding")])
def test_a_patch_release_that_differs_from_the_tables_is_noted(patch: str, words: str) -> None:
    (note,), _ = placed(of("Relu", F), target(patch))
    assert (note.placement, note.rule) == (Placement.UNKNOWN, "ORT-UNKNOWN-release")
    assert words in note.text
    assert not placed(of("Relu", F), target("1.14.1"))[0]


@pytest.mark.parametrize(
    ("made", "loads"),
    [
        (of("MeanVarianceNormalization", F, opset=8), True),  # ONNX Runtime's own schemas of version 1
        (of("Scale", F, opset=8), True),
        (of("LayerNormalization", H, F, F, opset=16), True),
        (of("LayerNormalization", H, F, F, opset=17), False),
    ],
)
def test_operators_of_onnxruntime_alone_have_their_own_formals(made: ModelProto, loads: bool) -> None:
    of_model, ((_, reason),) = placed(made, target("1.24"))
    assert not of_model
    assert (reason.placement is not Placement.NONE) == loads


def test_levels_and_other_targets_mean_the_newest_onnxruntime_directml() -> None:
    made = of("Relu", F, opset=26)
    for name, release in (("6_4", "1.24"), ("windows-11-24h2", "1.24"), ("onnxruntime-directml-1.13.1", "1.13")):
        (error,), _ = placed(made, Target.parse(name))
        assert error.text.startswith(f"opset 26: onnxruntime {release} loads up to ")
    later = Target(FeatureLevel.parse("6_4"), "onnxruntime-directml-1.31.0")
    (error,), _ = placed(of("Relu", F, opset=27), later)
    assert error.text == "opset 27: 1.30 loads up to 26, and what 1.31 loads is not known"


def test_the_kernels_of_releases_that_were_not_read_are_not_known_where_the_newest_has_none() -> None:
    for made, word in ((of("Add", BF, BF, opset=14), "unknown"), (of("Relu", F, opset=27), "unknown")):
        _, ((_, reason),) = placed(made, Target(FeatureLevel.parse("6_4"), "onnxruntime-directml-1.31.0"))
        assert (reason.placement, reason.rule) == (word, "ORT-UNKNOWN-release")


def test_float16_that_nobody_takes_is_cast_for_the_cpu_but_not_bfloat16() -> None:
    (_, reason), *_ = placements(of("NonMaxSuppression", F, F, opset=11), target("1.24"))
    assert reason.placement is Placement.CPU
    (_, reason), *_ = placements(of("Det", H, opset=13), target("1.24"))
    assert reason.placement is Placement.CPU
    assert reason.text == "Det-11: no release registers Det; its float16 values are cast to float32 and back"
    assert words(of("Det", BF, opset=22), target("1.24")) == ["none"]


def test_a_node_that_nobody_takes_is_replaced_by_the_nodes_of_its_function() -> None:
    found = [
        (node.place.pointer, node.place.operator, reason.placement)
        for node, reason in placements(of("HardSwish", F, opset=14), target("1.24"))
    ]
    assert [each for each in found if each[2] != "gone"] == [
        ("0/HardSwish/0", "HardSigmoid", "directml"),
        ("0/HardSwish/1", "Mul", "directml"),
    ]


@pytest.mark.parametrize(("domain", "is_known"), [("", True), ("own", False)])
def test_a_function_of_unknown_types_replaces_no_node(domain: str, *, is_known: bool) -> None:
    made = of_nodes(
        node("Neg", ["x"], ["a"], domain=domain),
        node("GroupNormalization", ["a", "scale", "bias"], ["y"], num_groups=1),
        inputs=[typed("x", [1, 2, 3]), typed("scale", [2]), typed("bias", [2])],
        opset=21,
        domains={domain: 1} if domain else None,
    )
    _, *others = placements(made, target("1.20"))
    words_of_others = {reason.placement for _, reason in others}
    assert words_of_others == ({"directml", "cpu", "gone"} if is_known else {"unknown"})


@pytest.mark.parametrize(("axes", "gone"), [(("a", "b"), False), (("a", "a"), True)])
def test_equal_constants_are_one_but_not_in_a_subgraph(axes: tuple[str, str], *, gone: bool) -> None:
    # compared with onnxruntime 1.24.4; silero_vad has such nodes
    text = f"r = Relu(x) u = Unsqueeze(r, {axes[0]}) v = Unsqueeze(r, {axes[1]}) y = Add(u, v)"
    fields: dict[str, Any] = {"initializer": [tensor("a", [0]), tensor("b", [0])]}
    own = placements(of_nodes(*computed(text), inputs=[typed("x", ["N"])], **fields), target("1.24"))
    assert [each.placement for node, each in own if node.place.operator == "Unsqueeze"] == ["directml", "gone"]
    branch = f"then_branch = g () => (y) {{ {text} }}, else_branch = h () => (w) {{ w = Unsqueeze(x, a) }}"
    inputs = [typed("x", ["N"]), typed("c", [], BOOL)]
    inside = placements(of_nodes(f"z = If (c) <{branch}>", inputs=inputs, **fields), target("1.24"))
    found = [each.placement for node, each in inside if node.place.pointer in ("0/then_branch/1", "0/then_branch/2")]
    assert found == ["directml", "gone" if gone else "directml"]


FOLDS: Final = "Fold (a) => (b) { i = Identity(a) c = Constant<value = float {2.0}>() d = Exp(c) b = Mul(i, d) }"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        # as onnxruntime's wheels of these releases leave the nodes
        *((each, "gone gone gone") for each in ("1.9", "1.11", "1.17", "1.24")),
        *((each, "kept gone kept") for each in ("1.12", "1.16")),
    ],
)
def test_functions_of_a_model_are_optimised_up_to_1_11_and_from_1_17_on(release: str, expected: str) -> None:
    made = of_nodes("y = own.Fold(x)", functions=[function(FOLDS)], domains={"own": 1})
    found = ["gone" if word == "gone" else "kept" for word in words(made, target(release))[0].split("/")]
    assert found == [*expected.split(), "kept"]


def test_calls_run_the_last_overload_of_a_function_before_1_27() -> None:
    functions = [function("F (a) => (b) { b = Neg(a) }"), function("F (a) => (b) { b = Exp(a) }")]
    for each, overload in zip(functions, ("one", "two"), strict=True):
        each.overload = overload
    calls = [
        node("F", ["x"], ["y"], domain="own", overload="one"),
        node("F", ["y"], ["z"], domain="own", overload="two"),
    ]
    made = of_nodes(*calls, functions=functions, domains={"own": 1})
    for name, operators, rules in (
        (target("1.24"), ["Exp", "Exp"], ["ORT-MODEL-overload"]),
        ("onnxruntime-windowsml-1.30.0", ["Neg", "Exp"], []),
    ):
        errors, found = placed(made, name)
        assert ([each.place.operator for each, _ in found], [each.rule for each in errors]) == (operators, rules)
    both = placed_model(made, target("1.24"), "onnxruntime-windowsml-1.30.0")
    assert [[each.operator for each, _ in both.at(i)] for i in range(2)] == [["Exp", "Exp"], ["Neg", "Exp"]]
    del made.graph.node[0]
    made.graph.node[0].input[0] = "x"
    assert placed(made, target("1.24"))[0] == []  # the last overload is the one that is called


def test_functions_of_operators_are_optimised_up_to_1_11_only() -> None:
    made = of_nodes(
        "y = SoftmaxCrossEntropyLoss(x, t)", inputs=[typed("x", [2, 4, 3]), typed("t", [2, 3], I64)], opset=13
    )
    for release, word in (("1.11", "gone"), ("1.12", "cpu"), ("1.13", "cpu"), ("1.24", "directml")):
        found = {node.place.operator: reason.placement for node, reason in placements(made, target(release))}
        assert (found["Shape"], found["Constant"]) == (word, "gone")


def test_a_node_is_folded_where_the_releases_own_cpu_provider_has_it() -> None:
    """The CPU provider has Add of uint32 from 1.21 on, and what follows is as constant as that."""
    constants = [tensor(name, [2], "uint32") for name in "cd"]
    made = of_nodes("a = Add(c, d); f = Cast<to=1>(a); y = Mul(x, f)", initializer=constants)
    assert words(made, target("1.20"), target("1.21")) == ["directml/directml/directml", "gone/gone/directml"]


@pytest.mark.parametrize(
    ("nodes", "number", "first"),
    [  # with the first of 1.9, 1.13, 1.14 and 1.24 whose wheel removes the second node; others are recorded, below
        ("m = Neg(x); a = Sub(m, c); y = Abs(a)", 0, "1.14"),
        ("m = Neg(x); a = Mul(c, m); y = Abs(a)", [1], "1.14"),
        ("m = Neg(x); a = Div(m, c); y = Abs(a)", 1, "1.14"),
        ("m = Neg(x); a = Sub(c, m); y = Abs(a)", 0, ""),
        ("m = Neg(x); a = Div(c, m); y = Abs(a)", 1, ""),
        ("m = Neg(x); a = Mul(m, c); y = Abs(a)", [[[1]]], ""),  # of more dimensions than the other
        ("m = Neg(x); a = Mul(x, c); y = Add(a, m)", 1, ""),  # of an input of the graph
    ],
)
def test_arithmetic_with_a_number_that_changes_nothing_is_gone(nodes: str, number: Any, first: str) -> None:
    made = of_nodes(nodes, inputs=[typed("x", [3, 2])], initializer=[tensor("c", number, "float32")])
    tried = ("1.9", "1.13", "1.14", "1.24")
    found = [each.split("/")[1] == "gone" for each in words(made, *map(target, tried))]
    assert found == [bool(first) and i >= tried.index(first) for i in range(len(tried))]


@pytest.mark.parametrize(
    ("nodes", "opset", "since", "gone"), [[*row.values()] for row in rows_of("optimised_nodes.jsonl")]
)
def test_nodes_that_do_nothing_or_repeat_are_gone_as_in_the_wheels(
    nodes: str, opset: int, since: str | None, gone: str
) -> None:
    whole = {"i0": 0, "i1": 1, "v0": [0], "v2": [2], "v3": [3], "v6": [6], "all": [-1], "s0": [0, 6]}
    whole |= {"s32": [3, 2], "s32b": [3, 2], "ones": [1, 1], "empty": [], "to0": [0, 3], "end": [2**63 - 1]}
    constants = [tensor(name, value) for name, value in whole.items()]
    constants += [tensor(name, number, "float32") for name, number in (("half", 0.5), ("same", 0.5), ("one", 1))]
    constants += [tensor(name, number, "uint8") for name, number in (("zero", 0), ("three", 3), ("tres", 3))]
    constants.append(tensor("minus", -3, "int8"))
    inputs = [typed("x", ["N", "M", 6]), typed("f", [2, 3]), typed("q", [2, 3], U8), typed("mode", [], BOOL)]
    inputs.append(typed("r", [1, 3]))
    made = of_nodes(nodes, inputs=inputs, initializer=constants, opset=opset)
    if any("w" in each.output for each in made.graph.node):
        made.graph.output.append(helper.make_empty_tensor_value_info("w"))
    for release in (each for each, limits in releases().items() if limits.opsets[""] >= opset):
        found = placements(made, target(version_text(release)))
        names = [made.graph.node[int(each.place.pointer)].output[0] for each, why in found if why.placement == "gone"]
        is_gone = since is not None and release >= kernels.version_of(since)
        assert sorted(names) == (gone.split() if is_gone else []), release


def test_a_slice_of_everything_is_gone_unless_it_has_axes_and_other_steps() -> None:
    """As the wheels of 1.9 to 1.24 do (findings/onnxruntime_slice_steps_without_axes.sh)."""
    constants = [tensor(name, [value]) for name, value in {"zero": 0, "two": 2, "end": 2**63 - 1}.items()]
    for axes, is_gone in (("zero", False), ("", True)):
        made = of_nodes(f"m = Neg(x); s = Slice(m, zero, end, {axes}, two); y = Abs(s)", initializer=constants)
        assert [each.split("/")[1] == "gone" for each in words(made, target("1.9"), target("1.24"))] == [is_gone] * 2


def test_nodes_are_equal_from_the_release_on_that_removes_what_is_between_them() -> None:
    nodes = "m = Neg(x); a = Mul(m, c); b = Abs(a); d = Abs(m); y = Add(b, d)"
    made = of_nodes(nodes, initializer=[tensor("c", 1, "float32")])
    kept, equal = "directml/directml/directml/directml/directml", "directml/gone/directml/gone/directml"
    assert words(made, target("1.13"), target("1.14")) == [kept, equal]


def test_the_graph_of_an_if_that_runs_takes_its_place_from_1_17_on_where_the_condition_is_known() -> None:
    made = of_nodes(if_text("t = Neg(x)"), initializer=[tensor("c", True, "bool")])
    assert words(made, target("1.16"), target("1.17")) == ["directml/directml/directml", "gone/directml/gone"]


def test_a_function_is_expanded_before_its_float16_is_cast() -> None:
    """The CPU provider has Gelu of float32; DirectML has none, but the nodes of its function in float16."""
    assert words(of("Gelu", F, opset=20), target("1.24")) == ["cpu"]
    found = placements(of("Gelu", H, opset=20), target("1.24"))
    assert {node.place.operator for node, _ in found} > {"Erf", "Mul"}
    assert {reason.placement for _, reason in found} == {"directml", "gone"}


@pytest.mark.parametrize(
    ("domain", "opset", "release", "newest"),
    [
        *(("ai.onnx.ml", 3, each, 2) for each in ("1.9", "1.10")),
        *(("ai.onnx.ml", 4, each, 3) for each in ("1.11", "1.13", "1.16")),
        ("ai.onnx.ml", 5, "1.17", 4),
        *(("ai.onnx.ml", 6, each, 5) for each in ("1.18", "1.24")),
        *(("com.microsoft", 2, each, 1) for each in ("1.9", "1.24")),
        ("ai.onnx.preview.training", 2, "1.24", 1),
    ],
)
def test_each_domain_has_a_newest_opset(domain: str, opset: int, release: str, newest: int) -> None:
    (error,), _ = placed(of_nodes("y = Relu(x)", domains={domain: opset}), target(release))
    assert error.text == f"opset {opset} of {domain}: onnxruntime {release} loads up to {newest}"
    assert error.suggestion == f"remove the import of {domain}, which no node uses"
    assert not placed(of_nodes("y = Relu(x)", domains={domain: newest, "own": 99}), target(release))[0]


@pytest.mark.parametrize(
    ("operator", "inputs", "output"),
    [
        ("DynamicTimeWarping", [F], "int32"),
        ("GridSample", [F, F], "float"),
        ("MatMulInteger16", [TensorProto.INT16] * 2, "int32"),
        ("BiasGelu", [None, None], None),
        ("QGemm", [U8, F, U8, TensorProto.INT8, F, TensorProto.INT8, I32, F, U8], "uint8"),
        ("QGemm", [U8, F, U8, TensorProto.INT8, F, TensorProto.INT8], "float"),
        ("QGemm", [U8, F, U8, TensorProto.INT8, F, TensorProto.INT8, I32, F, None], "float"),
        ("QuantizeLinear", [F, F], "uint8"),
        ("QuantizeLinear", [F, F, TensorProto.INT8], "int8"),
        *((f"QLinear{name}", [U8, F, U8, F, U8], "uint8") for name in ("Softmax", "Sigmoid", "AveragePool")),
    ],
)
def test_an_output_has_its_zero_point_s_type_or_the_one_that_all_kernels_give(
    operator: str, inputs: list[Any], output: Any
) -> None:
    made = of(operator, *inputs, domain=MICROSOFT)
    made.graph.node.append(node("Identity", ["y0"], ["z"]))
    behind, _ = placements(made, target("1.24"))[1]
    assert behind.inputs[0] is not None
    assert behind.inputs[0].type == output


def test_maps_are_types_of_the_cpu_providers_kernels() -> None:
    made = of_nodes(
        node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]),
        inputs=[typed("x", ["N", 2])],
        domains={"ai.onnx.ml": 1},
    )
    assert words(made, target("1.24")) == ["cpu"]


def test_functions_of_operators_come_to_a_number_of_nodes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_NODES", 100)
    text = "; ".join(f"y{i} = HardSwish({f'y{i - 1}' if i else 'x'})" for i in range(50))
    assert len(placements(of_nodes(text, opset=14), target("1.24"))) == 100
    with pytest.raises(InputError, match="the calls of functions come to more than 100 nodes"):
        placements(of_nodes(f"{text}; y = HardSwish(x)", opset=14), target("1.24"))


def test_shape_arithmetic_stays_on_the_cpu_from_1_14_until_float16_or_another_value_joins() -> None:
    text = "s = Shape(x); g = Gather(s, i); f = Cast<to=1>(g); m = Mul(f, k); h = Cast<to=10>(m); y = Neg(h)"
    made = of_nodes(text, inputs=[typed("x", ["N", 3])], initializer=[tensor("i", [0]), tensor("k", [2], "float32")])
    assert words(made, target("1.24"), target("1.13")) == [
        "directml/cpu/cpu/cpu/cpu/directml",
        "cpu/directml/directml/directml/directml/directml",
    ]
    # more than 100 elements of an initialiser keep a node on DirectML, an input of the graph does not
    for size, word in ((100, "cpu"), (101, "directml")):
        made = of_nodes(
            "s = Shape(x); y = Add(s, k)", inputs=[typed("x", ["N"])], initializer=[tensor("k", [1] * size)]
        )
        assert words(made, target("1.24")) == [f"directml/{word}"]
    made = of_nodes("s = Shape(x); y = Add(s, k)", inputs=[typed("x", ["N"]), typed("k", [9], I64)])
    assert words(made, target("1.24")) == ["directml/cpu"]


def test_an_input_that_directml_reads_on_the_cpu_keeps_a_node_there() -> None:
    made = of_nodes("s = Shape(x); y = Reshape(x, s)", inputs=[typed("x", ["N", 3])])
    assert words(made, target("1.24")) == ["directml/directml"]


def test_what_an_if_uses_from_outside_is_a_value_of_the_if() -> None:
    made = of_nodes(if_text("t = Neg(x)"), inputs=[typed("x", [2, 3]), typed("c", [], BOOL)])
    assert words(made, target("1.24")) == ["directml/directml/directml"]
    assert words(made, target("1.15")) == ["cpu/directml/directml"]  # If is registered from 1.16 on
    made = of_nodes(if_text("t = Neg(x)"), inputs=[typed("x", [2, 3]), typed("c", [], BOOL)], opset=22)
    assert words(made, target("1.24")) == ["cpu/directml/directml"]  # If-21 is the CPU provider's


IMPORTS: Final = {
    # the operator's domain and name, the imports, and the versions and placements of the node, each from a release on
    "no import of com.microsoft": (f"{MICROSOFT}.Gelu", {"": 13}, "1.9 1-cpu, 1.12 1-directml"),
    "no import of com.microsoft.nchwc": (f"{MICROSOFT}.nchwc.ReorderInput", {"": 13}, "1.9 1-cpu"),
    "no import of com.microsoft.dml": (f"{MICROSOFT}.dml.DmlFusedAdd", {"": 13}, "1.9 1-none, 1.13 1-directml"),
    "no import of ai.onnx.ml": ("ai.onnx.ml.LabelEncoder", {"": 13}, "1.9 2-cpu, 1.17 4-cpu"),
    "no import of ai.onnx beside another": ("GlobalAveragePool", {MICROSOFT: 1}, "1.9 1-directml, 1.21 22-cpu"),
    "all imports": (f"{MICROSOFT}.Gelu", {"": 13, MICROSOFT: 1}, "1.9 1-cpu, 1.12 1-directml"),
    "ai.onnx by its name": ("Relu", {"ai.onnx": 13}, "1.9 13-cpu, 1.10 13-directml"),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_a_domain_that_is_not_imported_has_the_newest_opset_of_the_release(case: str) -> None:
    operator, imports, expected = IMPORTS[case]
    domain, _, name = operator.rpartition(".")
    given: dict[str, Any] = {"keys_int64s": [1], "values_strings": ["a"]} if name == "LabelEncoder" else {}
    types = [typed("x", ["N", 16, 4, 4], I64 if given else F)]
    made = of_nodes(node(name, ["x"] * (2 if "dml" in domain else 1), ["y"], domain=domain, **given), inputs=types)
    del made.opset_import[:]
    made.opset_import.extend(helper.make_opsetid(*each) for each in imports.items())
    changes = dict(change.split() for change in expected.split(", "))
    placement = ""
    for release in map(version_text, releases()):
        placement = changes.pop(release, placement)
        of_model, ((found, reason),) = placed(made, target(release))
        assert f"{found.place.version}-{reason.placement}" == placement, release
        assert [each.rule for each in of_model] == ["ORT-MODEL-implied-opset"] * case.startswith("no import")
        for each in of_model:
            newest = f"{limits_at(kernels.version_of(release)).opsets[domain]} of {domain or 'ai.onnx'}"
            assert each.suggestion == f"import opset {newest}"
    assert not changes


def test_a_domain_that_no_release_knows_and_a_model_without_imports_do_not_load() -> None:
    for domain in ("own", "ai.onnx.preview"):
        _, reason = placements(of_nodes(node("Mine", ["x"], ["y"], domain=domain)), target("1.24"))[-1]
        said = f"the model imports no opset of the domain {domain}"
        assert (reason.rule, reason.why) == ("ORT-MODEL-opset-import", said)
    made = of("Relu", F)
    made.ir_version = 2
    assert words(made, target("1.24")) == ["directml"]
    del made.opset_import[:]
    (error,), ((_, reason),) = placed(made, target("1.24"))
    assert (error.rule, reason.placement) == ("ORT-MODEL-opset-import", "none")


def test_the_tables_have_the_rows_of_each_release_and_their_sources() -> None:
    counts = {version_text(release): sum(map(len, directml_kernels(release).values())) for release in releases()}
    assert sum(map(len, cpu_kernels((1, 24)).values())) == 608
    assert sum(map(len, cpu_kernels((1, 9)).values())) == 404
    for release, row in kernels._table("registrations.json")["releases"].items():
        assert counts.pop(release) == row["rows"]
        assert len(row["commit"]) == 40
        assert row["ref"]
    assert not counts
    for release in releases():
        for rows in (*directml_kernels(release).values(), *cpu_kernels(release).values()):
            assert all(0 < kernel.since <= kernel.to and all(kernel.types.values()) for kernel in rows)


def test_a_look_up_throws_where_a_constraint_is_not_the_operators_from_1_13_on() -> None:
    schemas = {(each.domain, each.name, each.since_version): each for each in onnx.defs.get_all_schemas_with_history()}
    throwing = []
    for release in releases():
        for (domain, operator), rows in directml_kernels(release).items():
            for kernel in rows:
                if schema := schemas.get((domain, operator, kernel.since)):
                    named = {name for each in (*schema.inputs, *schema.outputs) for name in (each.name, each.type_str)}
                    assert kernel.throws == (release >= (1, 13) and not named.issuperset(kernel.types)), operator
                throwing += [(release, operator, kernel.since)] * kernel.throws
    assert throwing == [((1, 13), "Identity", 14)]


@pytest.mark.parametrize(
    ("text", "entries", "why"),
    [
        ("y = Add(x, w)", {"location": "gone.bin"}, "'gone.bin' does not exist in the model's folder"),
        ("s = Shape(w); y = Reshape(x, s)", {"location": "gone.bin"}, "'gone.bin' does not exist"),  # which is folded
        (if_text("t = Add(x, w)", output="y"), {"location": "gone.bin"}, "'gone.bin' does not exist"),
        ("y = Add(x, w)", {"location": "w.bin", "offset": "8", "length": "12"}, "'w.bin' ends after 16 bytes"),
        ("y = Add(x, w)", {"location": "w.bin", "offset": "4", "length": "12"}, ""),
        ("y = Add(x, w)", {"location": "../w.bin"}, ""),  # which is not looked at up to 1.23
        ("y = Neg(x)", {"location": "gone.bin"}, ""),
    ],
)
def test_external_data_that_a_node_uses_and_that_are_missing_are_a_warning(
    text: str, entries: dict[str, str], why: str, tmp_path: Path
) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    for as_default in False, True:
        inputs = [typed("x", [3]), typed("c", [], BOOL), *[typed("w", [3])] * as_default]
        made = of_nodes(text, inputs=inputs, initializer=[tensor("w", [1.0] * 3, "float32")])
        weight = made.graph.initializer[0]
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.extend(onnx.StringStringEntryProto(key=key, value=entries[key]) for key in entries)
        errors, _ = placed(made, target("1.23"), tmp_path)  # from 1.24 on, all data must lie in the folder
        assert len(errors) == bool(why)
        assert all(f"the data of w are missing: {why}" in error.text for error in errors)
