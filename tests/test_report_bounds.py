"""What a report says of one item, and of one finding, is bounded, however long its texts and lists are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import onnx
import pytest
from onnx import helper
from onnx.parser import parse_graph

from dml_tile.readers.item import MAX_OPERATOR
from dml_tile.reports import bounds
from dml_tile.reports.bounds import MAX_MESSAGE
from dml_tile.reports.report import FORMATS
from dml_tile.text import MAX_NAME, MAX_QUOTED
from tests.helpers.check_files import BAD, INT64, TILE, captured, write
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import constant, model, tile_node, typed
from tests.helpers.onnx_graphs import node as proto

LONG: Final = "n" * 200_000
TARGETS: Final = ",".join(["5_0", "5_1", "5_2", *(f"6_{i}" for i in range(5))])
TENSOR: Final = {"DataType": "FLOAT32", "Sizes": [1]}


def reports(check: Call, *arguments: str) -> dict[str, str]:
    """Return what is written in each format, and on the standard streams."""
    printed = check(*arguments, "--format=text", "--verbose", *(f"--format={form}:out.{form}" for form in FORMATS))
    written = {form: Path(f"out.{form}").read_text("utf-8") for form in FORMATS}
    return written | {"verbose": printed.stdout, "standard error": printed.stderr}


def join(count: int) -> Any:
    """Return an operator of many tensors, each with findings of its own."""
    tensors = [TENSOR | {"Sizes": [i + 1], "TotalTensorSizeInBytes": 1} for i in range(count)]
    return {"Type": "JOIN", "Desc": {"InputTensors": tensors, "OutputTensor": TENSOR, "Axis": 0}}


def labelled_graph(label: str) -> str:
    edges = [{"FromNodeIndex": 0, "ToNodeIndex": 9}] * 200
    graph = {"InputCount": 0, "OutputCount": 0, "Nodes": [None], "IntermediateEdges": edges}
    return json.dumps(captured(None) | {"session": "s", "call": 1, "label": label, "graph": graph, "hresult": None})


def node(name: str) -> str:
    repeats = constant("r", [1, 2])
    nodes = [repeats, tile_node("x", "r", f"out of {name}", name)]
    onnx.save(model(*nodes, inputs=[typed("x", [f"d{name}", 3], onnx.TensorProto.INT64)]), "m.onnx")
    return "m.onnx"


def nodes(*given: onnx.NodeProto, **fields: Any) -> str:
    """Save a model, and return its name and an option."""
    made = model(*given, inputs=[typed("x", [2, 3]), typed("c", [], onnx.TensorProto.BOOL)], **fields)
    onnx.save(made, "m.onnx")
    return "m.onnx --via=ort"


def of(attribute: str, value: Any) -> dict[str, Any]:
    return {attribute: value}


def inside() -> onnx.GraphProto:
    return parse_graph("g () => (float[] t) { " + "t = Neg(x) " * 5 + "}")


def shape(name: str) -> str:
    """Return the name of a model whose input has another shape than is given, of many sizes."""
    onnx.save(model(tile_node(), inputs=[typed("x", [name[:20]] * (len(name) // 20 + 1))]), "m.onnx")
    return "m.onnx --input-shape=x=1"


def written(text: str, suffix: str = "json") -> str:
    Path(f"a.{suffix}").write_text(text)
    return f"a.{suffix}"


def wrong_data(name: str) -> onnx.TensorProto:
    return onnx.TensorProto(name=name, dims=[3], data_type=onnx.TensorProto.FLOAT, float_data=[1.0])


def dxdispatch(**parts: Any) -> str:
    return written(json.dumps({"resources": {}, "dispatchables": {}, "commands": []} | parts))


def dispatched(name: str) -> str:
    dispatch = {"type": "dispatch", "dispatchable": "t", "bindings": {"InputTensor": name}}
    zero = {"initialValuesDataType": "INT8", "initialValues": [0]}
    tiles = {"t": {"type": "TILE", "desc": TILE | COUNT}}
    return dxdispatch(resources={name: zero}, dispatchables=tiles, commands=[dispatch] * 5)


OPSET: Final = helper.make_opsetid("", 13)
COUNT: Final = {"RepeatsCount": 1}
SOURCES: Final[dict[str, Callable[[str], str]]] = {
    "label of a captured graph": lambda name: written(f"{labelled_graph(name)}\n", "jsonl"),
    "label of a captured operator": lambda name: written(json.dumps(captured(BAD) | {"label": name}), "jsonl"),
    "dispatchable": lambda name: dxdispatch(dispatchables={name: {"type": "TILE", "desc": BAD | COUNT}}),
    "key of a dispatchable": lambda name: dxdispatch(dispatchables={"t": {"type": "TILE", "desc": BAD | {name: 1}}}),
    "resource that cannot be read": lambda name: dxdispatch(resources={name: 7}),
    "resource of bindings": dispatched,
    "key of a descriptor": lambda name: written(json.dumps([TILE | {name: 1}, TILE | {"Repeats": [name]}])),
    "type of an operator": lambda name: written(json.dumps([{"Type": name}, {"Type": 70, "Desc": {name: 1}}])),
    "node, its tensors and dimensions": node,
    "sizes of an input": shape,
    "node that is placed": lambda name: nodes(tile_node("x", f"r{name}", name, name), proto("Neg", [name], ["y"])),
    "operator": lambda name: nodes(proto(name, ["x"], ["y"])),
    "domain": lambda name: nodes(proto("Neg", ["x"], ["y"], domain=name), domains={name: 1}),
    "domain that is not imported": lambda name: nodes(proto(name, ["x"], ["y"], domain=name)),
    "attribute": lambda name: nodes(proto("Relu", ["x"], ["y"], **of(name, 1))),
    "attribute with a graph": lambda name: nodes(proto("Fork", ["x"], ["y"], domain="own", **of(name, inside()))),
    "condition": lambda name: nodes(proto("If", ["c"], ["y"], name, then_branch=inside(), else_branch=inside())),
    "function": lambda name: nodes(
        *(proto(f"F{name}", ["x"], [f"y{i}"], f"{i}{name}", domain="own") for i in range(5)),
        functions=[
            helper.make_function("own", f"F{name}", ["a"], ["b"], [proto(f"G{name}", ["a"], ["b"], name)], [OPSET])
        ],
        domains={"own": 1},
    ),
    "initialiser": lambda name: nodes(proto("Add", ["x", name], ["y"]), initializer=[wrong_data(name)]),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_name_is_cut_in_each_report_of_each_target(check: Call, source: Callable[[str], str]) -> None:
    """Where it stands whole, that is once in all of them together, not once for each finding or target."""
    short = reports(check, *source("n" * 20).split(), "--target", TARGETS)
    long = reports(check, *source(LONG).split(), "--target", TARGETS)
    for form, text in long.items():
        assert "n" * (MAX_MESSAGE + 1) not in text, form
        assert len(text) < 60 * len(short[form]) + 10_000, form
    assert max(map(len, long.values())) < len(LONG)


def test_a_name_s_other_characters_are_counted(check: Call) -> None:
    (result,) = json.loads(reports(check, SOURCES["dispatchable"](LONG), "-t", "6_4")["json"])["results"]
    assert len(result["pointer"]) == MAX_NAME
    assert "n…(200015 characters, " in result["pointer"]
    (result,) = json.loads(reports(check, SOURCES["label of a captured operator"](LONG), "-t", "6_4")["json"])[
        "results"
    ]
    assert result["operator"].startswith(
        f"{LONG[:MAX_QUOTED]}… ({200_000 - MAX_QUOTED} more characters): FLOAT32 {{2}}"
    )


def test_findings_of_an_operator_have_not_each_all_of_it(check: Call) -> None:
    file = written(json.dumps(join(300)))
    found = reports(check, file, "-t", "6_2")
    (result,) = json.loads(found["json"])["results"]
    assert len(result["operator"]) < MAX_OPERATOR + 40
    assert len(result["findings"]) > 250
    for form, text in found.items():
        assert len(text) < 300 * (MAX_OPERATOR + MAX_MESSAGE), form


def test_findings_beyond_a_number_are_counted_and_count(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_FINDINGS", 20)
    (first,) = json.loads(reports(check, written(json.dumps(join(50))), "-t", "6_2")["json"])["results"]
    assert len(first["findings"]) == 20
    last = first["findings"][-1]["message"]
    assert last.endswith(f"; and {check_count(check) - 20} more findings")
    assert (first["verdict"], first["ok"]) == ("refused", False)
    assert "more finding" not in "".join(finding["message"] for finding in first["findings"][:-1])


def check_count(check: Call) -> int:
    """Return the number of findings in ``a.json``, as a baseline has them all."""
    check("a.json", "-t", "6_2", "--write-baseline", "known.json")
    assert check("a.json", "-t", "6_2", "--baseline", "known.json").exit_code == 0
    printed = check("a.json", "-t", "6_2", "--baseline", "known.json").stdout
    return int(printed.split(" findings in the baseline")[0].split()[-1])


@pytest.mark.parametrize("source", ["dispatchable", "resource that cannot be read"])
def test_a_fingerprint_is_of_the_whole_name(check: Call, source: str) -> None:
    def fingerprint(name: str) -> str:
        (record,) = json.loads(reports(check, SOURCES[source](name), "-t", "6_4")["gitlab"])
        return str(record["fingerprint"])

    assert fingerprint(f"{LONG}a") != fingerprint(f"{LONG}b")


def test_many_items_are_not_cut(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_FINDINGS", 2)
    result = check(write("many.json", [INT64] * 5), "-t", "4_0", "--format", "json")
    assert len(json.loads(result.stdout)["results"]) == 5
