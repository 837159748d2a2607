"""Known departures: each row with a condition has descriptors that get its note, and others that do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Final, cast

import pytest

from dml_tile.checking import check, require
from dml_tile.descriptors.graph import GraphDesc, InputGraphEdge, IntermediateGraphEdge, OutputGraphEdge
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.directml.known import OTHER_LINES, TABLE, known
from dml_tile.directml.sections import values_below
from dml_tile.directml.targets import Target
from dml_tile.findings import Severity
from dml_tile.rules.operator_view import tensors_of
from tests.helpers.command_line import invoke
from tests.helpers.descriptors import OPERATOR
from tests.helpers.paths import ROOT
from tests.helpers.recorded_answers import rows_of
from tests.helpers.rule_cases import gemm, other
from tests.test_graphs import constant

Json = dict[str, Any]
DEPTHWISE: Final = ROOT / "tests/data/conv_depthwise.json"


@cache
def executed() -> list[Json]:
    """The descriptors that DirectML executed."""
    return [row["desc"] for row in rows_of("executed_operators.jsonl.xz")]


def recorded(operator: str) -> list[OperatorDesc]:
    return [OperatorDesc.model_validate(desc) for desc in executed() if desc["Type"] == f"DML_OPERATOR_{operator}"]


def notes(desc: OperatorDesc | GraphDesc, target: str) -> set[str] | None:
    """The known departures of a descriptor; None if the target does not take it."""
    found = check(desc, target)
    if any(finding.severity is Severity.ERROR for finding in found):
        return None
    return {finding.rule for finding in found if "-KNOWN-" in finding.rule}


def type_of(fields: OperatorFields, tensor: str) -> str:
    return str(fields[tensor].desc.data_type.name)


def has_strides(fields: OperatorFields, tensor: str) -> bool:
    desc = fields[tensor].desc
    packed = [1]
    for size in reversed(desc.sizes[1:]):
        packed.insert(0, packed[0] * size)
    return desc.strides is not None and desc.strides != tuple(packed)


def numbers(lines: str) -> range:
    """The numbers of lines: ``39-47`` or ``39``."""
    first, _, last = lines.partition("-")
    return range(int(first), int(last or first) + 1)


def is_half(tensor: str) -> Callable[[OperatorFields], bool]:
    return lambda f: type_of(f, tensor) == "FLOAT16"


def is_32_bits(tensor: str) -> Callable[[OperatorFields], bool]:
    return lambda f: type_of(f, tensor) in ("INT32", "UINT32")


def always(fields: OperatorFields) -> bool:
    return True


def casts_16_to_64(f: OperatorFields) -> bool:
    bits = sorted(type_of(f, name)[-2:] for name in ("InputTensor", "OutputTensor"))
    return bits == ["16", "64"]


def has_tie(f: OperatorFields) -> bool:
    nearest = f["InterpolationMode"] == 0
    return nearest and any(round(1 / scale, 4) in (2, 4, 6, 8) for scale in f["Scales"])


def pads_output(f: OperatorFields) -> bool:
    return f["Direction"] == 1 and any(f["OutputPadding"]) and bool(f["BiasTensor"] or f["FusedActivation"])


OPERATORS: Final = [
    # a row, an operator, a target that has it and one that has not, and the fields that get the note
    ("grouped-convolution", "CONVOLUTION", "directml-1.8", "directml-1.8.2",
     lambda f: f["GroupCount"] > 1 and f["DimensionCount"] == 2),
    ("swish-strides", "ACTIVATION_SWISH", "6_2", "6_4", lambda f: has_strides(f, "InputTensor")),
    ("cast-16-64", "CAST", "directml-1.9.1", "directml-1.10.0", casts_16_to_64),
    ("hardmax-strides", "ACTIVATION_HARDMAX", "windows-11-22h2", "windows-11-24h2",
     lambda f: has_strides(f, "OutputTensor")),
    ("one-hot-uint64", "ONE_HOT", "directml-1.9.0", "directml-1.9.1",
     lambda f: type_of(f, "IndicesTensor") == "UINT64"),
    ("max-pooling-indices", "MAX_POOLING1", "directml-1.4.0", "directml-1.4.1", always),
    ("intel-half-gemm", "GEMM", "windows-11-25h2", "directml-1.15", is_half("ATensor")),
    ("normalise-one-element", "MEAN_VARIANCE_NORMALIZATION1", "directml-1.15.4", "6_4",
     lambda f: prod(f["InputTensor"].desc.sizes[axis] for axis in f["Axes"]) == 1),
    ("half-batch-normalization", "BATCH_NORMALIZATION_TRAINING", "directml-1.9.0", "5_1", is_half("InputTensor")),
    ("nearest-tie", "RESAMPLE1", "directml-1.15.4", "6_4", has_tie),
    ("nearest-tie", "RESAMPLE", "6_2", "6_4", has_tie),
    ("page-clip-order", "ELEMENT_WISE_CLIP", "5_0", "6_3", lambda f: f["Min"] > f["Max"]),
    ("page-round-away", "ELEMENT_WISE_ROUND", "5_2", "4_1",
     lambda f: f["RoundingMode"] == 2 and type_of(f, "InputTensor") == "FLOAT32"),
    ("page-lrn-region", "LOCAL_RESPONSE_NORMALIZATION", "6_2", "6_4", lambda f: f["LocalSize"] > 1),
    ("page-lstm-peephole", "LSTM", "directml-1.13.1", "directml-1.15.4", lambda f: f["PeepholeTensor"] is not None),
    ("page-lstm-clip", "LSTM", "6_2", "6_4", lambda f: bool(f["UseClipThreshold"])),
    ("page-batch-grad", "BATCH_NORMALIZATION_TRAINING_GRAD", "6_2", "6_4", always),
    ("page-quantized-wrap", "QUANTIZED_LINEAR_CONVOLUTION", "6_2", "6_4", always),
    ("page-dequantize-32", "ELEMENT_WISE_DEQUANTIZE_LINEAR", "5_0", "4_1", is_32_bits("InputTensor")),
    ("page-mean-wrap", "ELEMENT_WISE_MEAN", "6_2", "6_4", is_32_bits("ATensor")),
    ("page-output-padding", "CONVOLUTION", "6_2", "6_4", pads_output),
    ("page-half-overflow", "ELEMENT_WISE_RECIP", "5_2", "6_4", is_half("OutputTensor")),
    ("page-half-statistics", "LP_NORMALIZATION", "5_0", "6_4", is_half("InputTensor")),
    ("page-last-word", "ELEMENT_WISE_QUANTIZED_LINEAR_ADD", "6_0", "6_4",
     lambda f: prod(f["OutputTensor"].desc.sizes) % 4 != 0),
    ("page-roi-align1", "ROI_ALIGN1", "6_2", "6_4", always),
    ("page-pooling-scales", "QUANTIZED_LINEAR_AVERAGE_POOLING", "6_2", "6_4", always),
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "operator", "target", "other", "gets_it"), OPERATORS, ids=["-".join(each[:4]) for each in OPERATORS]
)
def test_an_operator_gets_its_note(
    row: str, operator: str, target: str, other: str, gets_it: Callable[[OperatorFields], bool]
) -> None:
    expected, got = list[bool](), list[bool]()
    for desc in recorded(operator):
        assert isinstance(desc.desc, OperatorFields)
        assert f"DML-KNOWN-{row}" not in (notes(desc, other) or ())
        if (found := notes(desc, target)) is not None:
            expected.append(gets_it(desc.desc))
            got.append(f"DML-KNOWN-{row}" in found)
    assert got == expected
    assert True in got
    assert gets_it is always or False in got


def chain(*nodes: OperatorDesc, read: int = 1) -> GraphDesc:
    """A graph in which each node reads the one before; of the last, some outputs are read."""
    last, views = len(nodes) - 1, [tensors_of(cast("OperatorFields", node.desc))[0] for node in nodes]
    given = [(i, k) for i, view in enumerate(views) for k, _ in enumerate(filter(None, view.values())) if k or not i]
    return GraphDesc(
        input_count=len(given),
        output_count=read,
        nodes=nodes,
        input_edges=[
            InputGraphEdge(graph_input_index=number, to_node_index=i, to_node_input_index=k)
            for number, (i, k) in enumerate(given)
        ],
        output_edges=[
            OutputGraphEdge(from_node_index=last, from_node_output_index=k, graph_output_index=k) for k in range(read)
        ],
        intermediate_edges=[IntermediateGraphEdge(from_node_index=i, to_node_index=i + 1) for i in range(last)],
    )


SQUARE: Final = (1, 1, 2, 2)
FLAT: Final = {"DataType": "FLOAT32", "Sizes": SQUARE}
HALF: Final = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 2]}
HALVES: Final = OperatorDesc(type="SPLIT", desc={"InputTensor": FLAT, "OutputTensors": [HALF] * 2, "Axis": 2})
JOINED: Final = OperatorDesc(type="JOIN", desc={"InputTensors": [FLAT], "OutputTensor": FLAT, "Axis": 2})
CAST, COPY, ABS = (other(name, sizes=SQUARE) for name in ("CAST", "ELEMENT_WISE_IDENTITY", "ELEMENT_WISE_ABS"))
ADD: Final = OperatorDesc(type="ELEMENT_WISE_ADD", desc=dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), FLAT))
GEMM: Final = gemm(sizes=SQUARE)

NODES: Final = [
    # a row, a descriptor that gets it at a target, where it gets it, and a target and a descriptor that do not
    ("elided-casts", chain(CAST), "6_0", "Nodes[0].Operator", "6_1", CAST),
    ("elided-casts", chain(ABS, CAST), "directml-1.12", "Nodes[1].Operator", "directml-1.10.1", chain(ABS)),
    ("join-1.13.0", chain(JOINED), "directml-1.13.0", "Nodes[0].Operator", "directml-1.13.1", JOINED),
    ("large-constant", constant(), "directml-1.13.0", "Nodes[0]", "directml-1.13.1", chain(ABS)),
    ("gemm-add", chain(GEMM, ADD), "directml-1.13.0", "Nodes[0].Operator", "directml-1.13.1", chain(GEMM, ABS)),
    ("split-unconnected", chain(HALVES), "directml-1.9.0", "Nodes[0].Operator", "directml-1.9.1",
     chain(HALVES, read=2)),
    ("identity-at-end", chain(ABS, COPY), "directml-1.8.0", "Nodes[1].Operator", "directml-1.9.1", chain(COPY, ABS)),
]  # fmt: skip


@pytest.mark.parametrize(("row", "desc", "target", "path", "other", "passes"), NODES)
def test_a_node_of_a_graph_gets_its_note(
    row: str, desc: GraphDesc, target: str, path: str, other: str, passes: OperatorDesc | GraphDesc
) -> None:
    found = check(desc, target)
    assert [finding.path for finding in found if finding.rule == f"DML-KNOWN-{row}"] == [path]
    for without, where in ((passes, target), (desc, other)):
        assert f"DML-KNOWN-{row}" not in (notes(without, where) or ())


def test_a_pooling_whose_scales_have_its_dimension_count_gets_no_note() -> None:
    data = recorded("QUANTIZED_LINEAR_AVERAGE_POOLING")[0].model_dump(mode="json", by_alias=True)
    for name in ("InputScaleTensor", "OutputScaleTensor", "InputZeroPointTensor", "OutputZeroPointTensor"):
        if tensor := data["Desc"][name]:
            tensor["Desc"] |= {"DimensionCount": 4, "Sizes": [1] * 4, "Strides": None}
    assert "DML-KNOWN-page-pooling-scales" not in (notes(OperatorDesc.model_validate(data), "6_2") or {"refused"})


def test_each_row_with_a_condition_has_both_cases() -> None:
    conditional = {row.id.removeprefix("DML-KNOWN-") for row in known().values() if row.where and row.operators}
    assert conditional == {case[0] for case in (*OPERATORS, *NODES)}


def test_each_line_of_the_release_notes_is_a_row_or_is_named_as_none() -> None:
    sources = [source for row in known().values() for source in row.sources]
    of_rows = {int(line) for line in re.findall(r"/Releases\.md\?plain=1#L(\d+)", " ".join(sources))}
    others = [line for lines in values_below(TABLE, OTHER_LINES).values() for each in lines for line in numbers(each)]
    assert len(others) == len({*others})
    assert of_rows.isdisjoint(others)
    assert (len(of_rows), len(others)) == (26, 125)
    assert {min(others), max(others)} == {36, 258}


def test_a_row_without_a_source_is_not_loaded(tmp_path: Path) -> None:
    text = TABLE.read_text("utf-8").replace('sources = ["releases 66"]\n', "")
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(ValueError, match="DML-KNOWN-swish-strides has no source"):
        known(tmp_path / "known.toml")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("windows-11-22h2", "DirectML 1.8.0 may"), ("windows-11-23h2+no-double-precision", "DirectML 1.8.0 may"),
        ("onnxruntime-directml-1.11.1", "DirectML 1.8.0 may"), ("directml-1.8", "DirectML 1.8.0 may"),
        ("directml-1.8.1", "DirectML 1.8.1 may"), ("directml-1.7.0", "DirectML 1.7.0 may"),
        ("4_1", "DirectML at 4_1 may"),
        ("directml-1.6.0", ""), ("directml-1.8.2", ""), ("5_0", ""), ("onnxruntime-directml-1.12.1", ""),
    ],
)  # fmt: skip
def test_the_release_of_a_target_decides(target: str, expected: str) -> None:
    desc = OperatorDesc.model_validate_json(DEPTHWISE.read_text())
    found = [finding for finding in check(desc, target) if "-KNOWN-" in finding.rule]
    assert [finding.message.partition(" compute")[0] for finding in found] == (
        [f"CONVOLUTION with GroupCount 4: {expected}"] if expected else []
    )
    assert not found or found[0].suggestion == "ship DirectML 1.8.2 or later, or use ONNX Runtime 1.12 or later"


@pytest.mark.parametrize(("level", "has_it"), [("6_1", False), ("6_2", True), ("6_3", True), ("6_4", False)])
def test_a_level_has_what_all_its_releases_have(level: str, has_it: bool) -> None:
    assert known()["DML-KNOWN-swish-strides"].holds_at(Target.parse(level)) == has_it


def test_a_note_changes_no_verdict_and_fails_a_check_where_it_is_asked_to() -> None:
    arguments = "check", str(DEPTHWISE), "-t", "windows-11-22h2"
    require(OperatorDesc.model_validate_json(DEPTHWISE.read_text()), "windows-11-22h2")
    plain = invoke(*arguments)
    assert plain.exit_code == 0
    assert "accepted at windows-11-22h2" in plain.stdout
    assert "note[DML-KNOWN-grouped-convolution]" in plain.stdout
    assert invoke(*arguments, "--fail-on", "note").exit_code == 1
    assert invoke(*arguments, "--fail-on", "note", "--ignore", "DML-KNOWN").exit_code == 0


def test_what_is_refused_has_no_known_departure() -> None:
    desc = OperatorDesc.model_validate_json(DEPTHWISE.read_text().replace('"GroupCount": 4', '"GroupCount": 3'))
    assert notes(desc, "windows-11-22h2") is None
    assert not [finding for finding in check(desc, "windows-11-22h2") if "-KNOWN-" in finding.rule]
    assert notes(OPERATOR, "4_1") == set()


def test_explain_shows_a_row_whole() -> None:
    text = invoke("explain", "DML-KNOWN-grouped-convolution").stdout
    for words in ("GroupCount > 1", "fixed in 1.8.2", "try: ship DirectML 1.8.2", "L164", "issues/234", "pull/237"):
        assert words in text
    assert "it is not looked at" in invoke("explain", "DML-KNOWN-arc-pooling").stdout
