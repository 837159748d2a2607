"""A suggestion that changes fields is an edit, and is offered only if the descriptor with all edits passes."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from dml_tile.checking import check
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.rules.edits import MAX_EDITS, edited
from tests.helpers.check_files import write
from tests.helpers.command_line import Call
from tests.helpers.descriptors import page_tile
from tests.recorder.edits import mended, passes
from tests.recorder.releases import RELEASES


def tensor(*sizes: int, data_type: str = "FLOAT32", **fields: Any) -> dict[str, Any]:
    return {"DataType": data_type, "Sizes": sizes} | fields


def operator(kind: str, **fields: Any) -> OperatorDesc:
    return OperatorDesc.model_validate({"Type": kind, "Desc": fields})


def softmax(kind: str, *sizes: int, **fields: Any) -> OperatorDesc:
    return operator(kind, InputTensor=tensor(*sizes, **fields), OutputTensor=tensor(*sizes))


def add(a: Any, b: Any, output: Any) -> OperatorDesc:
    return operator("ELEMENT_WISE_ADD", ATensor=a, BTensor=b, OutputTensor=output)


WINDOW: Final = {name: [1] for name in ("Strides", "Dilations")} | {
    name: [0] for name in ("StartPadding", "EndPadding", "OutputPadding")
}
CONVOLUTION: Final = operator(
    "CONVOLUTION", InputTensor=tensor(1, 4, 9), FilterTensor=tensor(2, 4, 3), OutputTensor=tensor(1, 2, 7),
    Mode="CROSS_CORRELATION", Direction="FORWARD", GroupCount=1, **WINDOW,
)  # fmt: skip
TOP: Final = operator(
    "TOP_K", InputTensor=tensor(3, 4), OutputValueTensor=tensor(3, 2),
    OutputIndexTensor=tensor(3, 2, data_type="UINT32"), Axis=1, K=2,
)  # fmt: skip
FLOAT, INT, LONG = tensor(2, 3), tensor(2, 3, data_type="INT32"), tensor(2, 3, data_type="INT64")
CASES: Final[dict[str, tuple[OperatorDesc, str, dict[str, Any]]]] = {
    # a refused descriptor, a level, and fields of it with all edits
    "the majority is the measure": (add(INT, FLOAT, FLOAT), "6_4", {"ATensor.DataType": 1}),
    "two inputs outvote the output": (add(FLOAT, FLOAT, tensor(2, 5)), "6_4", {"OutputTensor.Sizes": (2, 3)}),
    "a type that the row lacks is no measure": (
        softmax("ACTIVATION_RELU", 2, data_type="FLOAT64"), "6_4", {"InputTensor.DataType": 1}
    ),
    "an input follows by strides of 0": (
        add(tensor(1, 3), tensor(2, 3), tensor(2, 3)), "6_4", {"ATensor.Sizes": (2, 3), "ATensor.Strides": (0, 1)}
    ),
    "a 1 stands behind the channels": (
        CONVOLUTION, "3_0", {"FilterTensor.Sizes": (2, 4, 1, 3), "Dilations": (1, 1), "EndPadding": (0, 0)}
    ),
    "axes follow leading ones": (TOP, "3_0", {"Axis": 3, "OutputIndexTensor.Sizes": (1, 1, 3, 2)}),
    "a tensor with fewer dimensions gets leading ones": (
        operator("BATCH_NORMALIZATION", InputTensor=FLOAT, OutputTensor=FLOAT, Spatial=1, Epsilon=0, **{
            f"{each}Tensor": tensor(3) for each in ("Mean", "Variance", "Scale", "Bias")
        }), "6_4", {"MeanTensor.Sizes": (1, 3), "BiasTensor.Sizes": (1, 3)},
    ),
    "sizes of the usual count are the measure": (
        operator("GEMM", ATensor=tensor(1, 2, 4), BTensor=tensor(1, 4, 3), CTensor=FLOAT, OutputTensor=tensor(1, 2, 3),
                 TransA="NONE", TransB="NONE", Alpha=1, Beta=1), "6_4", {"CTensor.Sizes": (1, 2, 3)},
    ),
    "no count is beyond what a tensor has": (
        add(tensor(2, DimensionCount=2**32 - 1), tensor(2, DimensionCount=2**32 - 1), tensor(2)), "6_4",
        {"ATensor.DimensionCount": 1},
    ),
    "a scale is an operator of its own": (
        operator("ELEMENT_WISE_ABS", InputTensor=LONG, OutputTensor=LONG, ScaleBias={"Scale": 2, "Bias": 0}), "6_2",
        {"ScaleBias": None},
    ),
    "the total follows other fields": (
        add(FLOAT, FLOAT, tensor(2, 3, Strides=[1, 1], TotalTensorSizeInBytes=4)), "6_4",
        {"OutputTensor.Strides": (3, 1), "OutputTensor.TotalTensorSizeInBytes": 24},
    ),
}  # fmt: skip


def with_edits(desc: OperatorDesc, target: str) -> dict[str, Any]:
    """The fields of a refused descriptor with all edits, which passes, by their paths."""
    edits = [edit for finding in check(desc, target) for edit in finding.edits]
    made = edited(desc, edits)
    assert check(desc, target)
    assert check(made, target) == ()
    data: dict[str, Any] = made.model_dump(by_alias=True)["Desc"]
    of_tensors = {f"{name}.{field}": each for name, value in data.items() if name.endswith("Tensor") and value
                  for field, each in value["Desc"].items()}  # fmt: skip
    return data | of_tensors


@pytest.mark.parametrize(("desc", "target", "fields"), CASES.values(), ids=CASES)
def test_a_descriptor_with_all_edits_passes(desc: OperatorDesc, target: str, fields: dict[str, Any]) -> None:
    assert fields.items() <= with_edits(desc, target).items()


@pytest.mark.parametrize("kind", ["ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX", "ACTIVATION_HARDMAX"])
def test_an_operator_on_a_matrix_is_given_one_or_is_a_newer_operator(kind: str) -> None:
    (finding,) = check(softmax(kind, 1, 4, 16, 16), "6_4")
    newer = f"use {kind}1 with Axes {{3}}, from 5_1"
    assert finding.suggestion == f"describe both tensors as matrices, with Sizes {{1, 1, 64, 16}}, or {newer}"
    assert with_edits(softmax(kind, 1, 4, 16, 16), "6_4")["OutputTensor.Sizes"] == (1, 1, 64, 16)
    (finding,) = check(softmax(kind, 1, 4, 16, 16, Strides=[1024, 1, 64, 4]), "6_4")
    assert finding.suggestion == newer, "a matrix would have its elements in another order"


def test_no_edit_is_offered_if_another_finding_stays() -> None:
    def suggestions(**unknown: Any) -> list[str | None]:
        found = check(add(FLOAT, tensor(2, 3, TotalTensorSizeInBytes=4, **unknown), FLOAT), "6_4")
        return [finding.suggestion for finding in found]

    assert suggestions() == ["set it to 24"]
    assert suggestions(Type=7) == [None, None]


def test_the_last_of_two_edits_of_a_field_is_offered_alone() -> None:
    cast, same = check(add(INT, tensor(2, 3, data_type="FLOAT64"), INT), "5_0")
    assert (cast.rule, cast.edits) == ("DML-OPERATOR-DataType", ())
    assert same.suggestion == "set it to INT32"


@pytest.mark.parametrize(("count", "is_offered"), [(MAX_EDITS, True), (MAX_EDITS + 1, False)])
def test_a_descriptor_has_a_bounded_number_of_edits(count: int, *, is_offered: bool) -> None:
    inputs = [tensor(1, TotalTensorSizeInBytes=0)] * count
    found = check(operator("JOIN", InputTensors=inputs, OutputTensor=tensor(count), Axis=0), "6_4")
    assert [bool(finding.edits) for finding in found] == [is_offered] * count


def test_edits_of_a_graph_s_node_name_fields_of_the_graph() -> None:
    node = {"Type": "OPERATOR", "Operator": {"Type": "TILE", "Desc": page_tile(OutputTensor__Sizes=[1, 1, 6, 8])}}
    edges = {"InputEdges": [{"GraphInputIndex": 0, "ToNodeIndex": 0}],
             "OutputEdges": [{"FromNodeIndex": 0, "GraphOutputIndex": 0}]}  # fmt: skip
    graph = GraphDesc.model_validate({"InputCount": 1, "OutputCount": 1, "Nodes": [node], **edges})
    (finding,) = check(graph, "6_4")
    assert finding.edits == (("Nodes[0].Operator.OutputTensor.Sizes[3]", 9),)
    assert check(edited(graph, finding.edits), "6_4") == ()


def test_a_message_about_sizes_names_the_attribute_that_decides() -> None:
    tensors = {"WeightTensor": tensor(1, 1, 2, 4), "RecurrenceTensor": tensor(1, 1, 2, 2)}
    rnn = operator(
        "RNN", InputTensor=tensor(1, 2, 3, 4), OutputSequenceTensor=tensor(2, 1, 3, 2), Direction="BIDIRECTIONAL",
        ActivationDescs=[{"Type": "ACTIVATION_TANH", "Desc": {}}] * 2, **tensors,
    )  # fmt: skip
    messages = {finding.message for finding in check(rnn, "6_4") if "Sizes[1]" in finding.path}
    assert messages == {"1 was provided, but num_directions = 2 was expected, since Direction is BIDIRECTIONAL"}


@pytest.mark.parametrize(("target", "version"), [("5_0", "0x5000"), ("6_2", "0x6200"), ("1_0", None)])
def test_an_operator_of_directmlx_may_be_an_older_one(target: str, version: str | None) -> None:
    sampled = {name: [1.0] * 2 for name in ("Scales", "InputPixelOffsets", "OutputPixelOffsets")}
    resample = operator("RESAMPLE3", InputTensor=FLOAT, OutputTensor=FLOAT, InterpolationMode="LINEAR",
                        RoundingDirection="INCREASING", Antialiased=False, **sampled)  # fmt: skip
    suggestion = next(each.suggestion or "" for each in check(resample, target) if each.path == "Type")
    assert suggestion.partition(", or, if DirectMLX made it, build with DML_TARGET_VERSION=")[2] == (version or "")


def test_json_has_the_edits(call: Call) -> None:
    path = write("a.json", json.loads(add(INT, FLOAT, FLOAT).model_dump_json(by_alias=True)))
    (result,) = json.loads(call("check", path, "--format", "json").stdout)["results"]
    assert [each["edits"] for each in result["findings"]] == [[{"path": "ATensor.DataType", "value": "FLOAT32"}]]
    assert "No such option" in call("check", "--fix", path).stderr


def test_nearly_all_offered_edits_are_taken() -> None:
    made, rest = mended(RELEASES, 150, "4")
    assert len(made) == 150 - rest.total() >= 0.45 * 150
    assert sum(map(passes, made)) >= 0.95 * len(made)
