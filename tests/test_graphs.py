"""Graphs of tiles: their descriptors, their rules, and their execution on the simulated device."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from numpy.typing import NDArray
from pydantic import ValidationError

from dml_tile import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, CommandList, Device
from dml_tile.checking import check
from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.graph import (
    GraphDesc,
    InputGraphEdge,
    IntermediateGraphEdge,
    OperatorGraphNodeDesc,
    OutputGraphEdge,
)
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import plans
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.emit.cpp import cpp_text
from dml_tile.emit.source import python_text
from dml_tile.errors import DmlError
from dml_tile.findings import Against, Basis, Severity
from dml_tile.readers.c_structs import DML_GRAPH_DESC, read_graph_desc
from dml_tile.readers.descriptors import read_document
from dml_tile.readers.item import Item
from dml_tile.rules.descriptor import lowest_level, not_looked_at
from tests.helpers.command_line import invoke
from tests.helpers.compilers import COMPILERS, EACH_HEADERS, WARNINGS, compiled, needs_compiler
from tests.helpers.descriptors import page_tile, row
from tests.helpers.devices import NUMBERS, initialise, removing_rules, table
from tests.helpers.played_lives import GRAPH_TILES, GRAPHS, graph_of
from tests.recorder.devices import written_graph
from tests.test_editors import SCHEMAS

VALIDATOR: Final = Draft202012Validator(SCHEMAS["dml_graph_desc"])
FIRST: Final = row("FLOAT32", [2, 3], [1, 2])
SECOND: Final = row("FLOAT32", [2, 6], [3, 1])
INTO: Final = InputGraphEdge(graph_input_index=0, to_node_index=0)
ONWARD: Final = IntermediateGraphEdge(from_node_index=0, to_node_index=1)
OUT: Final = OutputGraphEdge(from_node_index=1, graph_output_index=0)
TWO: Final = GraphDesc(
    input_count=1,
    output_count=1,
    nodes=[FIRST, OperatorGraphNodeDesc(operator=SECOND, name="second")],
    input_edges=[INTO],
    output_edges=[OUT],
    intermediate_edges=[ONWARD],
)
BACK: Final = IntermediateGraphEdge(from_node_index=1, to_node_index=0)
ADD: Final = OperatorDesc(type=0x80000004, desc=SECOND)

WIDE: Final = row("FLOAT16", [3], [1], OutputTensor__TotalTensorSizeInBytes=12)


FLAT: Final = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 12]}
FLAT_IDENTITY: Final = OperatorDesc(type="ACTIVATION_IDENTITY", desc={"InputTensor": FLAT, "OutputTensor": FLAT})


def of(*names: str) -> GraphDesc:
    """A chain of tiles from one input to one output."""
    return TWO.replace(nodes=[GRAPH_TILES[name] for name in names])


def shared(first: Any, second: Any) -> GraphDesc:
    """Two operators of one input, with an output each."""
    outputs = [OUT, OUT.replace(from_node_index=0, graph_output_index=1)]
    return GraphDesc(
        input_count=1,
        output_count=2,
        nodes=[first, second],
        input_edges=[INTO, INTO.replace(to_node_index=1)],
        output_edges=outputs,
    )


def constant(data_size: int | None = 24, **fields: Any) -> GraphDesc:
    """A constant that feeds a tile of FLOAT32 {2,3}."""
    nodes = [OperatorGraphNodeDesc(operator=None, type="CONSTANT", data_size=data_size, **fields), FIRST]
    return TWO.replace(input_count=0, input_edges=[], nodes=nodes)


REFUSED: Final[dict[str, list[tuple[GraphDesc, str]]]] = {
    # by the rule: what it refuses, and the field
    "DML-GRAPH-NodeCount": [(GraphDesc(input_count=0, output_count=0, nodes=[]), "NodeCount")],
    "DML-GRAPH-array": [
        (TWO.replace(output_edges=None, output_edge_count=1), "OutputEdges"),
        (TWO.replace(node_count=3), "Nodes"),
    ],
    "DML-GRAPH-Desc-null": [
        (TWO.replace(nodes=[None, SECOND]), "Nodes[0].Desc"),
        (TWO.replace(nodes=[OperatorGraphNodeDesc(operator=None), SECOND]), "Nodes[0].Operator"),
        (TWO.replace(intermediate_edges=[None]), "IntermediateEdges[0].Desc"),
    ],
    "DML-GRAPH-Type": [
        (TWO.replace(output_edges=[OUT.replace(type="INPUT")]), "OutputEdges[0].Type"),
        (TWO.replace(nodes=[OperatorGraphNodeDesc(operator=FIRST, type=7), SECOND]), "Nodes[0].Type"),
        (constant(), "Nodes[0].Type"),
    ],
    "DML-GRAPH-index": [
        (TWO.replace(input_count=0), "InputEdges[0].GraphInputIndex"),
        (TWO.replace(output_count=0), "OutputEdges[0].GraphOutputIndex"),
        (TWO.replace(intermediate_edges=[ONWARD.replace(to_node_index=2)]), "IntermediateEdges[0].ToNodeIndex"),
        (TWO.replace(input_edges=[INTO.replace(to_node_input_index=1)]), "InputEdges[0].ToNodeInputIndex"),
    ],
    "DML-GRAPH-node-input": [
        (TWO.replace(input_edges=[]), "Nodes[0]"),
        (TWO.replace(input_edges=[INTO, INTO.replace(to_node_index=1)]), "Nodes[1]"),
    ],
    "DML-GRAPH-node-output": [(TWO.replace(output_edges=[]), "Nodes[1]")],
    "DML-GRAPH-cycle": [(TWO.replace(input_edges=[], intermediate_edges=[ONWARD, BACK]), "IntermediateEdges[0]")],
    "DML-GRAPH-DataSize": [(constant(23), "IntermediateEdges[0]")],
    "DML-GRAPH-intermediate-owned": [(of("A", "B owned"), "IntermediateEdges[0]")],
    "DML-GRAPH-TotalTensorSizeInBytes": [(of("A", "B large"), "IntermediateEdges[0]")],
    "DML-GRAPH-extent": [(TWO.replace(nodes=[WIDE, row("FLOAT32", [3], [1])]), "IntermediateEdges[0]")],
    "DML-GRAPH-shared-input": [
        (shared(FIRST, row("FLOAT32", [2, 3], [1, 2], InputTensor__Flags=1)), "InputEdges[1]"),
        (shared(FIRST, SECOND), "InputEdges[1]"),
    ],
    "DML-GRAPH-edge-layout": [(TWO.replace(nodes=[FIRST, FLAT_IDENTITY]), "IntermediateEdges[0]")],
    "DML-GRAPH-output-twice": [(TWO.replace(output_edges=[OUT.replace(from_node_index=0), OUT]), "OutputEdges[0]")],
}
TILES_ALONE: Final = [graph for rule, cases in REFUSED.items() for graph, _ in cases if rule != "DML-GRAPH-edge-layout"]
CASES: Final = [(rule, *case) for rule, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(("rule", "graph", "path"), CASES)
def test_a_rule_of_graphs_refuses_and_accepts(rule: str, graph: GraphDesc, path: str) -> None:
    found = [finding for finding in check(graph, "5_0") if finding.rule == rule]
    assert path in [finding.path for finding in found]
    assert {finding.basis for finding in found} == {RULES[rule].basis}
    assert {finding.basis for finding in check(graph, "4_1") if finding.rule == rule} <= {
        Basis.INFERRED,
        Basis.DOCUMENTED | Basis.INFERRED,
    }
    assert not check(TWO, "5_0")


@pytest.mark.parametrize("changes", [{"DataType": "INT32"}, {"Sizes": [1, 1, 1, 12]}, {"Strides": [12, 12, 1, 2]}])
def test_an_edge_that_reinterprets_a_tensor_has_no_note(changes: dict[str, Any]) -> None:
    """As DirectMLX's Reinterpret connects operators."""
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 6], "TotalTensorSizeInBytes": 48} | changes
    tensors = {"InputTensor": tensor, "OutputTensor": tensor}
    absolute = OperatorDesc(type="ELEMENT_WISE_ABS", desc=tensors | {"ScaleBias": None})
    assert check(TWO.replace(nodes=[FIRST, absolute]), "6_2") == ()


@pytest.mark.parametrize("data_size", [24, 25, 4096, None])
def test_a_constant_is_taken_from_6_2_on_with_a_note(data_size: int | None) -> None:
    graph = constant(data_size)
    for against in get_args(Against):
        (note,) = check(graph, "6_2", against=against)
        assert (note.rule, note.path, note.severity) == ("DML-GRAPH-Type-CONSTANT", "Nodes[0].Type", Severity.NOTE)
        (refusal,) = check(graph, "6_1", against=against)
        assert (refusal.rule, refusal.hresult) == ("DML-GRAPH-Type", HRESULT.E_INVALIDARG)
        assert refusal.basis == Basis.DOCUMENTED | Basis.INFERRED
        assert "DML_GRAPH_NODE_TYPE_CONSTANT needs DML_FEATURE_LEVEL_6_2" in refusal.message
    assert lowest_level(graph) == FeatureLevel.parse("6_2")
    assert "on Windows, DirectML takes such nodes from 6_2 on" in invoke("explain", "80004001").stdout


@pytest.mark.parametrize(
    ("graph", "rule", "message"),
    [
        (constant(23), "DML-GRAPH-DataSize", "the input reaches 24 bytes, but the constant has 23"),
        (constant(null_data=True), "DML-GRAPH-Desc-null", "null was provided, but the data were expected"),
        (constant().replace(input_count=1, input_edges=[INTO]), "DML-GRAPH-index", "but the node has no input"),
        (constant().replace(intermediate_edges=[ONWARD.replace(from_node_output_index=1)]), "DML-GRAPH-index",
         "1 was provided, but an index below 1 was expected"),
        (TWO.replace(nodes=[*(TWO.nodes or ()), (constant().nodes or ())[0]]), "DML-GRAPH-node-output",
         "no edge leads from its output"),
    ],
)  # fmt: skip
def test_an_edge_leads_from_a_constant_and_none_to_it(graph: GraphDesc, rule: str, message: str) -> None:
    assert message in next(each.message for each in check(graph, "6_2") if each.rule == rule)


def run(
    device: Device, graph: GraphDesc, inputs: Sequence[NDArray[Any] | None], sizes: Sequence[int]
) -> list[NDArray[np.float32]]:
    """Initialise and execute a graph; None stands for an input that no node reads, 0 for an output that none writes."""
    compiled = device.compile_graph(graph)
    given = [None if values is None else BufferBinding(Buffer.wrap(values.copy())) for values in inputs]
    outputs = [Buffer(size) if size else None for size in sizes]
    owned = [slot.size_in_bytes > 0 for slot in compiled.plan.initial_slots]
    initial = [one if one and own else BufferBinding(None) for one, own in zip(given, owned, strict=True)]
    (persistent,) = initialise(device, [compiled], [BufferArrayBinding(initial)])
    bindings = table(device, compiled)
    bindings.bind_inputs([one if one and not own else BindingDesc() for one, own in zip(given, owned, strict=True)])
    bindings.bind_outputs([BufferBinding(one) if one else BindingDesc() for one in outputs])
    bindings.bind_persistent_resource(persistent if persistent.buffer else BindingDesc())
    if temporary := compiled.get_binding_properties().temporary_resource_size:
        bindings.bind_temporary_resource(BufferBinding(Buffer(temporary)))
    device.create_command_recorder().record_dispatch(compiled, bindings)
    return [one.memory.view(np.float32) for one in outputs if one]


def dispatched(graph: GraphDesc, inputs: Sequence[Any], size: int, against: Against = "both") -> list[float]:
    """The graph's output after a dispatch."""
    (output,) = run(Device("6_4", against=against, raise_on_removal=True), graph, inputs, [size])
    values: list[float] = output.tolist()
    return values


def test_a_device_executes_a_graph_with_constants() -> None:
    data = np.arange(6, dtype=np.float32)
    compiled = Device("6_2").compile_graph(constant(data=data))
    assert compiled.get_binding_properties().temporary_resource_size == 0
    with pytest.raises(DmlError, match="DML-GRAPH-Type"):
        Device("6_1").compile_graph(constant(data=data))
    longer = [*data.tobytes(), 0, 0]
    for graph in (constant(data=data), constant(data=bytes(longer)), constant(None, data=data)):
        assert dispatched(graph, [], 48) == np.tile(data.reshape(2, 3), (1, 2)).ravel().tolist()
    tensor = {"DataType": "FLOAT32", "Sizes": [2, 3]}
    add = OperatorDesc(type="ELEMENT_WISE_ADD", desc=dict.fromkeys(["ATensor", "BTensor", "OutputTensor"], tensor))
    (node, _) = constant(data=data).nodes or ()
    sums = TWO.replace(nodes=[node, add], input_edges=[INTO.replace(to_node_index=1, to_node_input_index=1)])
    assert dispatched(sums, [np.ones(6, np.float32)], 24) == [1, 2, 3, 4, 5, 6]


def test_a_constant_of_four_bit_elements_is_executed() -> None:
    tensors = {"InputTensor": {"DataType": "INT4", "Sizes": [3]}, "OutputTensor": {"DataType": "FLOAT32", "Sizes": [3]}}
    scales = {"QuantizationType": "SCALE", "QuantizationTensors": [{"DataType": "FLOAT32", "Sizes": [1]}]}
    desc = OperatorDesc(type="DEQUANTIZE", desc=tensors | scales)
    nodes = [OperatorGraphNodeDesc(operator=None, type="CONSTANT", data=b"\xf1\x07"), desc]
    graph = TWO.replace(nodes=nodes, input_edges=[INTO.replace(to_node_index=1, to_node_input_index=1)])
    assert dispatched(graph, [np.array([2], np.float32)], 12) == [2, -2, 14]
    short = graph.replace(nodes=[OperatorGraphNodeDesc(operator=None, type="CONSTANT", data=b"1"), desc])
    assert [each.message for each in check(short, "6_4") if each.rule == "DML-GRAPH-DataSize"] == [
        "the input reaches 2 bytes, but the constant has 1"
    ]


@pytest.mark.parametrize("against", get_args(Against))
def test_a_constant_without_its_bytes_is_compiled_and_not_executed(against: Against) -> None:
    with pytest.raises(DmlError, match=r"DML-EXECUTE-constant\] Nodes\[0\].Data: the constant's bytes are not given"):
        dispatched(constant(), [], 48, against)
    outputs = TWO.replace(nodes=[(constant(data=bytes(24)).nodes or ())[0]], intermediate_edges=[], input_edges=[])
    with pytest.raises(DmlError, match=r"OutputEdges\[0\]: it leads from a constant"):
        dispatched(outputs.replace(input_count=0, output_edges=[OUT.replace(from_node_index=0)]), [], 0, against)
    for wrong, said in (
        (constant(24, data=bytes(23)), "23 bytes were provided, but 24"),
        (constant(24, data=bytes(1)), "1 byte was provided, but 24"),
        (constant(data_size=None, data=bytes(23)), "23"),
    ):
        with pytest.raises(DmlError, match=said):
            dispatched(wrong, [], 48, against)


def test_a_constant_s_bytes_are_base64_in_json() -> None:
    node = OperatorGraphNodeDesc(operator=None, type="CONSTANT", data=bytearray(b"\xff\x00"))
    assert (node.data, node.data_size) == (b"\xff\x00", 2)
    text = node.model_dump_json(by_alias=True)
    assert '"Data":"/wA=","DataSize":2' in text
    assert OperatorGraphNodeDesc.model_validate_json(text) == node == eval(repr(node))
    assert node.replace(data=b"abc").data_size == 3
    for data in ("/wA", 7, "é"):
        with pytest.raises(ValidationError, match="Input should be bytes, or their text in base64"):
            node.replace(data=data)
    with pytest.raises(ValidationError, match="NullData is true, but there are Data"):
        node.replace(null_data=True)
    assert node.replace(data=None).data_size is None


def test_before_2_1_there_is_no_graph_to_compile() -> None:
    for target in ("1_0", "windows-10-2004"):
        with pytest.raises(DmlError, match="has no IDMLDevice1") as error:
            Device(target).compile_graph(TWO)
        assert error.value.hresult == HRESULT.E_NOINTERFACE
    assert str(lowest_level(TWO)) == "3_1"
    assert str(lowest_level(of("A", "B"))) == "2_1"


def test_a_graph_is_refused_for_every_reason_at_once() -> None:
    graph = TWO.replace(nodes=[page_tile(RepeatsCount=3), SECOND], output_edges=[])
    with pytest.raises(DmlError, match="CompileGraph: E_INVALIDARG") as error:
        Device().compile_graph(graph, 8)
    assert [(finding.rule, finding.path) for finding in error.value.findings] == [
        ("DML-TILE-RepeatsCount", "Nodes[0].Operator.RepeatsCount"),
        ("DML-GRAPH-node-output", "Nodes[1]"),
        ("DML-COMPILE-flags", "flags"),
    ]
    with pytest.raises(DmlError, match="DML-GRAPH-null"):
        Device().compile_graph(None)


def test_a_node_of_another_operator_is_not_checked_beyond_indices_and_edges() -> None:
    edges = [ONWARD, ONWARD.replace(from_node_output_index=3, to_node_input_index=2)]
    graph = TWO.replace(
        nodes=[ADD, SECOND], intermediate_edges=edges, input_edges=[INTO.replace(to_node_input_index=1)]
    )
    found = check(graph)
    assert [finding.path for finding in found if finding.severity is Severity.NOTE] == ["Nodes[0].Operator.Type"]
    assert {finding.path for finding in found[1:]} == {"IntermediateEdges[1].ToNodeInputIndex"}
    alone = TWO.replace(nodes=[ADD, SECOND])
    assert [finding.rule for finding in check(alone)] == ["DML-OPERATOR-not-a-tile"]
    with pytest.raises(DmlError, match="private to DirectML"):
        Device().compile_graph(alone)


@pytest.mark.parametrize(
    ("led_to", "said"),
    [
        ([], "no edge leads to input 0 of {}, InputTensor, but 1 was expected, as for each of 3 more inputs"),
        ([0, 1, 2], "no edge leads to input 4 of {}, BiasTensor, but 1 was expected"),
        ([0, 1, 2, 4, 4], "2 edges lead to input 4 of {}, BiasTensor, but 1 was expected"),
        ([1, 2, 2, 4], "no edge leads to input 0 of {}, InputTensor, but 1 was expected, as for each of 1 more input"),
        ([0, 1, 2, 4], ""),
    ],
)
def test_a_node_has_one_finding_for_all_inputs_that_not_one_edge_leads_to(led_to: list[int], said: str) -> None:
    """Findings of many nodes that share an operator of many inputs would be as many as nodes times inputs."""
    one = {"DataType": "FLOAT32", "Sizes": [1, 3, 1, 1]}
    names = ("InputTensor", "MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor", "OutputTensor")
    fields = dict.fromkeys(names, one) | {"ScaleTensor": None, "Spatial": 1, "Epsilon": 0, "FusedActivation": None}
    operator = OperatorDesc(type="BATCH_NORMALIZATION", desc=fields)
    edges = [InputGraphEdge(graph_input_index=i, to_node_index=0, to_node_input_index=i) for i in led_to]
    output = OutputGraphEdge(from_node_index=0, graph_output_index=0)
    for node, name in ((operator, ""), (OperatorGraphNodeDesc(operator=operator, name="bn.1"), " 'bn.1'")):
        graph = GraphDesc(input_count=5, output_count=1, nodes=[node], input_edges=edges, output_edges=[output])
        found = [each.message for each in check(graph, "6_2") if each.rule == "DML-GRAPH-node-input"]
        assert found == [said.format(f"BATCH_NORMALIZATION{name}")] * bool(said)


def like(name: str, sizes: Sequence[int], total: int = 0, **fields: Any) -> OperatorDesc:
    """An operator whose input and output have the same sizes, and perhaps a total of the input's own."""
    tensor = {"DataType": "FLOAT32", "Sizes": sizes}
    read = tensor | ({"TotalTensorSizeInBytes": total} if total else {})
    return OperatorDesc(type=name, desc={"InputTensor": read, "OutputTensor": tensor, **fields})


FOUR, TWELVE = [1, 1, 2, 2], [1, 1, 6, 2]
IDENTITY: Final = "ELEMENT_WISE_IDENTITY"
RELU: Final = like("ACTIVATION_RELU", TWELVE)


@pytest.mark.parametrize(
    ("graph", "named"),
    [
        # Microsoft's runtime refuses these, the second and the last at 5_0 alone
        (shared(RELU, like(IDENTITY, FOUR)), ["InputEdges[1]"]),
        (shared(like(IDENTITY, TWELVE), like(IDENTITY, FOUR)), ["InputEdges[0]", "InputEdges[1]"]),
        (TWO.replace(nodes=[RELU, like("ACTIVATION_RELU", FOUR, total=48)]), ["IntermediateEdges[0]"]),
        (TWO.replace(nodes=[RELU, like("ACTIVATION_IDENTITY", [1, 1, 1, 12])]), ["IntermediateEdges[0]"]),
        # and takes these
        (shared(like("ACTIVATION_RELU", FOUR), like(IDENTITY, TWELVE)), ["InputEdges[1]"]),
        (shared(RELU, like("ACTIVATION_RELU", FOUR)), []),
        (shared(RELU, like(IDENTITY, FOUR, ScaleBias={"Scale": 2, "Bias": 0})), []),
        (shared(like(IDENTITY, FOUR), like(IDENTITY, FOUR)), []),
        (TWO.replace(nodes=[RELU, like("ACTIVATION_RELU", [1, 1, 1, 12])]), []),
        (TWO.replace(nodes=[RELU, like(IDENTITY, TWELVE)]), []),
        (TWO.replace(nodes=[RELU, row("FLOAT32", FOUR, [1] * 4, InputTensor__TotalTensorSizeInBytes=48)]), []),
    ],
)
def test_edges_of_which_directml_may_want_more_are_named(graph: GraphDesc, named: list[str]) -> None:
    assert [finding for finding in check(graph, "6_2") if finding.severity > Severity.NOTE] == []
    assert [*not_looked_at(graph)] == named


def test_a_graph_of_any_operators_is_executed_node_by_node() -> None:
    kinds = {"InputTensor": ("FLOAT32", 4), "OutputValueTensor": ("FLOAT32", 2), "OutputIndexTensor": ("UINT32", 2)}
    tensors = {name: {"DataType": data_type, "Sizes": [size]} for name, (data_type, size) in kinds.items()}
    top = OperatorDesc(type="TOP_K", desc=tensors | {"Axis": 0, "K": 2})
    graph = TWO.replace(
        output_count=2,
        nodes=[top, row("UINT32", [2], [3])],
        output_edges=[OUT.replace(from_node_index=0), OUT.replace(graph_output_index=1)],
        intermediate_edges=[ONWARD.replace(from_node_output_index=1)],
    )
    values, indices = run(Device(raise_on_removal=True), graph, [np.array([3, 9, 1, 7], np.float32)], [8, 24])
    assert (values.tolist(), indices.view(np.uint32).tolist()) == ([9, 7], [1, 3] * 3)


@pytest.mark.parametrize("first", [GRAPH_TILES["A"], GRAPH_TILES["A owned"]])
def test_a_graph_does_what_its_tiles_do_one_after_another(first: TileOperatorDesc) -> None:
    graph = GraphDesc(
        input_count=3,
        output_count=4,
        nodes=[GRAPH_TILES["B"], first, first],
        input_edges=[INTO.replace(graph_input_index=2, to_node_index=node) for node in (1, 2)],
        output_edges=[
            OutputGraphEdge(from_node_index=node, graph_output_index=output)
            for node, output in ((0, 3), (1, 0), (2, 1))
        ],
        intermediate_edges=[IntermediateGraphEdge(from_node_index=1, to_node_index=0)],
    )
    once = np.tile(NUMBERS.reshape(2, 3), (3, 3))
    outputs = run(Device(raise_on_removal=True), graph, [None, None, NUMBERS], [216, 216, 0, 432])
    for output, expected in zip(outputs, (once, once, np.tile(once, (2, 1))), strict=True):
        np.testing.assert_array_equal(output, expected.ravel())


def test_bytes_are_passed_on_as_they_are_and_shapes_and_types_are_not_compared() -> None:
    graph = TWO.replace(nodes=[GRAPH_TILES["A"], row("FLOAT16", [12, 9], [1, 2])])
    (output,) = run(Device(raise_on_removal=True), graph, [NUMBERS], [432])
    halves = np.tile(NUMBERS.reshape(2, 3), (3, 3)).view(np.uint16).reshape(12, 9)
    np.testing.assert_array_equal(output.view(np.uint16).reshape(12, 18), np.tile(halves, (1, 2)))
    (output,) = run(Device(raise_on_removal=True), of("A", "B turned"), [NUMBERS], [432])
    turned = np.tile(NUMBERS.reshape(2, 3), (3, 3)).reshape(9, 6)
    np.testing.assert_array_equal(output.reshape(18, 6), np.tile(turned, (2, 1)))


def test_poisoned_temporary_memory_shows_what_is_never_written() -> None:
    graph = of("A padded", "B padded").replace(nodes=[GRAPH_TILES["A padded"], row("FLOAT32", [96], [1])])
    (output,) = run(Device(raise_on_removal=True, padding="poison"), graph, [NUMBERS], [384])
    poison = np.frombuffer(b"\xcd" * 4, np.float32)[0]
    rows = output.reshape(6, 16)
    np.testing.assert_array_equal(rows[:, :9], np.tile(NUMBERS.reshape(2, 3), (3, 3)))
    assert (rows[:, 9:] == poison).all()


OWNED: Final = of("A owned aligned", "B")


def bound(by: Against, name: str, range_: BufferBinding) -> set[str] | None:
    """Bind a range to an owning graph, or to its initializer, and return the rules that remove the device."""
    device = Device(against=by)
    compiled = device.compile_graph(OWNED)
    first = table(device, device.create_operator_initializer([compiled]))
    bindings: dict[str, Callable[[], None]] = {
        "input": lambda: table(device, device.compile_graph(of("A aligned", "B"))).bind_inputs([range_]),
        "output": lambda: table(device, compiled).bind_outputs([range_]),
        "temporary": lambda: table(device, compiled).bind_temporary_resource(range_),
        "persistent": lambda: table(device, compiled).bind_persistent_resource(range_),
        "initializer's input": lambda: first.bind_inputs([BufferArrayBinding([range_])]),
        "initializer's output": lambda: first.bind_outputs([range_]),
    }
    bindings[name]()
    return removing_rules(device) if device.removal else None


@pytest.mark.parametrize(
    "name", ["input", "output", "temporary", "persistent", "initializer's input", "initializer's output"]
)
def test_sizes_of_what_a_graph_is_bound_to_are_documented_only(name: str) -> None:
    for size in (0, 4):
        assert bound("runtime", name, BufferBinding(Buffer(4096), size_in_bytes=size)) is None
        assert bound("both", name, BufferBinding(Buffer(4096), size_in_bytes=size)) == {"DML-BINDING-SizeInBytes"}
    multiple = 16 if name in ("input", "output", "initializer's input") else 256
    at = [BufferBinding(Buffer(4096), offset, 2048) for offset in (multiple // 2, multiple, 256)]
    assert [bound("runtime", name, each) for each in at] == [{"DML-BINDING-Offset"}, None, None]
    is_stricter = name in ("input", "initializer's input")
    assert bound("both", name, at[1]) == ({"DML-BINDING-Offset"} if is_stricter else None)
    assert bound("both", name, at[2]) is None


@pytest.mark.parametrize(
    ("graph", "properties"),
    [
        (of("A", "B"), (4, 256, 0)),
        (graph_of(GRAPHS[3]), (6, 512, 256)),  # a chain of three
        (of("A owned", "B"), (4, 256, 256)),
        (shared(*[GRAPH_TILES["A owned"]] * 2), (4, 0, 512)),
        (of("A strided", "B"), (12, 1536, 0)),
    ],
)
def test_pieces_of_memory_lie_at_multiples_of_256_bytes(graph: GraphDesc, properties: tuple[int, int, int]) -> None:
    assert astuple(Device().compile_graph(graph).get_binding_properties()) == properties


def test_a_graph_s_temporary_resource_is_not_bound_again_before_its_dispatch_is_executed() -> None:
    device = Device()
    compiled = device.compile_graph(of("A", "B"))
    initialise(device, [compiled])
    bindings = table(device, compiled)
    bindings.bind_inputs([BufferBinding(Buffer.wrap(NUMBERS.copy()))])
    bindings.bind_outputs([BufferBinding(Buffer(432))])
    bindings.bind_temporary_resource(BufferBinding(Buffer(256)))
    commands = CommandList()
    device.create_command_recorder().record_dispatch(compiled, bindings, commands)
    bindings.bind_temporary_resource(BufferBinding(Buffer(256)))
    assert device.removal
    assert [finding.path for finding in device.removal.findings] == ["TemporaryResource"]
    assert removing_rules(device) == {"DML-BINDING-recorded"}
    commands.reset()


@pytest.mark.parametrize(("binds", "rules"), [(False, {"DML-BINDING-missing"}), (True, {"DML-BINDING-owned"})])
def test_a_graph_s_temporary_resource_is_bound_and_its_unused_inputs_are_not(binds: bool, rules: set[str]) -> None:
    device = Device(against="runtime")
    compiled, recorder = device.compile_graph(TWO.replace(input_count=2)), device.create_command_recorder()
    bindings = table(device, compiled)
    bindings.bind_inputs([BufferBinding(Buffer(24)), BufferBinding(Buffer(24)) if binds else BindingDesc()])
    bindings.bind_outputs([BufferBinding(Buffer(144))])
    recorder.record_dispatch(compiled, bindings)
    assert removing_rules(device) == rules
    if binds:
        assert "no node uses it" in str(device.removal)


@pytest.mark.parametrize("graph", [TWO, *TILES_ALONE], ids=str)
def test_a_graph_is_written_and_read_back_equal(graph: GraphDesc) -> None:
    assert GraphDesc.model_validate_json(graph.model_dump_json(by_alias=True)) == graph
    document = graph.model_dump(mode="json", by_alias=True)
    VALIDATOR.validate(document)
    (part,) = read_document(json.dumps(document).encode())
    assert isinstance(part, Item)
    assert part.desc == graph
    names: dict[str, Any] = {}
    exec(f"import dml_tile\n{python_text(graph, 'it')}", names)
    assert names["it_desc"] == graph


def test_nodes_and_edges_are_read_as_they_lie_in_c_too() -> None:
    edge = {
        "Type": "DML_GRAPH_EDGE_TYPE_INPUT",
        "Desc": {"GraphInputIndex": 0, "ToNodeIndex": 0, "ToNodeInputIndex": 0},
    }
    tile = FIRST.model_dump(mode="json", by_alias=True)
    node = {"Type": "OPERATOR", "Desc": {"Operator": tile, "Name": None}}
    graph = GraphDesc.model_validate({"InputCount": 1, "OutputCount": 0, "Nodes": [node], "InputEdges": [edge]})
    assert graph == GraphDesc(input_count=1, output_count=0, nodes=[FIRST], input_edges=[INTO])


@pytest.mark.parametrize(("count", "name"), [("input_count", "InputCount"), ("output_count", "OutputCount")])
def test_memory_is_taken_for_few_inputs_and_outputs(monkeypatch: pytest.MonkeyPatch, count: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 4294967295; graphs of at most 65536 inputs and outputs"):
        Device().compile_graph(TWO.replace(**{count: 2**32 - 1}))
    monkeypatch.setattr(plans, "MAX_SLOTS", 16)
    Device().compile_graph(TWO.replace(**{count: 16}))
    with pytest.raises(ValueError, match=f"{name} is 17; graphs of at most 16"):
        Device().compile_graph(TWO.replace(**{count: 17}))


def test_a_graph_in_memory_is_read_with_the_descriptors_of_its_operators() -> None:
    graph = TWO.replace(nodes=[FIRST, SECOND])
    written = written_graph(graph, [0x1000, 0x2000])
    operators = {0x1000: OperatorDesc(type=70, desc=FIRST), 0x2000: OperatorDesc(type=70, desc=SECOND)}
    assert read_graph_desc(written, operators.__getitem__) == graph
    assert read_graph_desc(None, operators.__getitem__) is None
    assert ctypes.sizeof(DML_GRAPH_DESC) == 72
    constant = OperatorGraphNodeDesc(operator=None, type="CONSTANT", data=b"data")
    other = OperatorGraphNodeDesc(operator=SECOND, type=7)
    nodes = (None, constant, constant.replace(data=None, data_size=4, null_data=True), other)
    rare = written_graph(TWO.replace(nodes=nodes, node_count=4), [None, None, None, 0x2000])
    read = read_graph_desc(rare, operators.__getitem__)
    assert read is not None
    assert read.nodes == (*nodes[:3], other.replace(operator=None))


def test_a_graph_s_cpp_builds_its_nodes_and_edges() -> None:
    text = cpp_text(TWO.replace(nodes=[FIRST, OperatorGraphNodeDesc(operator=SECOND, name='"\\?\n')]), "it")
    nodes = r'DML_OPERATOR_GRAPH_NODE_DESC it_operators[2] = {{nullptr, nullptr}, {nullptr, "\042\134\077\012"}};'
    assert f"static {nodes}" in text
    assert "const DML_INTERMEDIATE_GRAPH_EDGE_DESC it_intermediate_edge_descs[1] = {{0, 0, 1, 0, nullptr}};" in text
    assert text.endswith(
        "const DML_GRAPH_DESC it_graph = "
        "{1, 1, 2, it_nodes, 1, it_input_edges, 1, it_output_edges, 1, it_intermediate_edges};\n"
    )


@needs_compiler
@pytest.mark.parametrize("headers", EACH_HEADERS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_units_with_the_same_cpp_link(tmp_path: Path, compiler: str, headers: list[str]) -> None:
    hollow = TWO.replace(nodes=[None, None]), TWO.replace(nodes=[FIRST, None]), TWO.replace(nodes=[], node_count=0)
    written = *map(graph_of, GRAPHS), TWO, *hollow, FIRST, None
    uses = [f"&it{i}_{'graph' if isinstance(desc, GraphDesc) else 'operator'}" for i, desc in enumerate(written)]
    (tmp_path / "it.h").write_text("".join(cpp_text(desc, f"it{i}") for i, desc in enumerate(written)))
    lines = ["#include <DirectML.h>", '#include "it.h"', "int other();", "int NAME()", "{"]
    lines += [f"const void* const used[] = {{{', '.join(uses)}}};", "return used[0] == nullptr;", "}", ""]
    units = [tmp_path / f"{name}.cpp" for name in ("main", "other")]
    for unit in units:
        unit.write_text("\n".join(lines).replace("NAME", unit.stem))
    compiled(compiler, "-std=c++11", *WARNINGS, *headers, *units, "-o", tmp_path / "program")
    subprocess.run([tmp_path / "program"], check=True)


def test_commands_take_graphs() -> None:
    text = TWO.model_dump_json(by_alias=True)
    assert "accepted" in invoke("check", "-", stdin=text).stdout
    assert "const DML_GRAPH_DESC tile_graph" in invoke("emit", "-", "--lang", "cpp", stdin=text).stdout
    assert "it is no Tile operator" in invoke("show", "-", stdin=text).output
