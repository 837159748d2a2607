"""Each line of the table in docs/dxdispatch.md, which says form by form what is done with a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.dxdispatch.fields import model_findings
from dml_tile.dxdispatch.model import read_model
from dml_tile.errors import InputError, RefusedModelError
from dml_tile.formats.json_text import Document
from tests.helpers.command_line import Call
from tests.helpers.dxdispatch_models import OWNED, Json, model, tile_json, values

PAGE: Final = (Path(__file__).parent.parent / "docs" / "dxdispatch.md").read_text()


def tile(**fields: Any) -> Json:
    """A dispatchable with some of its tile's fields replaced."""
    return {"type": "TILE", "desc": tile_json([2], [2], **fields)}


def with_tile(dispatchable: Json) -> Json:
    return model(dispatchables={"tile": dispatchable})


def with_input(resource: Json) -> Json:
    return model(resources={"In": resource, "Out": model()["resources"]["Out"]})


def printing(resource: Json, **command: Any) -> Json:
    shown = {"type": "print", "resource": "R"} | command
    return model(resources={"R": resource}, dispatchables={}, commands=[shown])


def bound(**bindings: Any) -> Json:
    data = model()
    data["commands"][0]["bindings"] |= bindings
    return data


EIGHT_BITS: Final = values(65, 200, 0, 66, data_type="UINT8")
GEMM: Final = {"gemm": {"type": "GEMM", "desc": {"ATensor": 1}}}
READ_AND_NOT_USED: Final = {"name": "In", "format": "DXGI_FORMAT_R32_FLOAT", "shape": [2], "counter": "In"}

# The first cell of a line of the table: a text or a model, the arguments of a command, and what it prints or complains.
FORMS: Final[dict[str, list[tuple[str | Json, tuple[str, ...], str]]]] = {
    "FLOAT16 values": [
        (printing(values(1.2, 65520, data_type="FLOAT16")), ("run",), "Resource 'R': 1.19922, 65504\n"),
    ],
    "FLOAT16 sequences": [
        (printing({"initialValuesDataType": "FLOAT16",
                   "initialValues": {"valueCount": 4, "valueStart": 2048, "valueDelta": 1.5}}),
         ("run",), "Resource 'R': 2048, 2048, 2048, 2048\n"),
    ],
    '`"Strides": null`, `"Repeats": null`, `"sizeInBytes": null`': [
        (with_tile(tile(input={"Strides": None})), ("check",), "error[DML-DXDISPATCH-null]"),
        (with_tile(tile(Repeats=None)), ("check",), "error[DML-DXDISPATCH-null]"),
        (with_input(values(1, 2, sizeInBytes=None)), ("check",),
         "m.json#/resources/In: refused at 6_4\n  resource\n  error[DML-DXDISPATCH-null] DirectML is not called\n"),
    ],
    '`"DataType": 1`, numbers for `Flags`, `Type` and `executionFlags`': [
        (with_tile(tile(input={"DataType": 1})), ("check",), "InputTensor.DataType: is 1; DxDispatch's parser"),
        (with_tile(tile(input={"Flags": [0]})), ("check",), "InputTensor.Flags"),
        (with_tile(tile(output={"Type": 1})), ("check",), "OutputTensor.Type: is 1"),
        (with_tile(tile() | {"executionFlags": 0}), ("check",), "executionFlags: is 0"),
    ],
    "FLOAT16 among typed values": [
        (with_input(values({"type": "FLOAT16", "value": 1}, {"type": "UINT64", "value": 1}, data_type="UNKNOWN")),
         ("check",), "error[DML-DXDISPATCH-typed-value]"),
    ],
    "an integer among floats that no double holds": [
        (with_input(values(2**53 + 1, 2)), ("check",), "initialValues[0]: is 9007199254740993, which no FLOAT64"),
    ],
    "a number beyond a double": [
        (with_input(values(10**400, 2)), ("check",), "which is beyond a FLOAT64"),
    ],
    '`"Type": "TILE"` alone in a dispatchable': [
        (with_tile({"Type": "TILE", "desc": tile_json([2], [2])}), ("check",), "error[DML-DXDISPATCH-type]"),
    ],
    "both `type` and `Type`": [
        (with_tile(tile() | {"type": "GEMM", "Type": "TILE"}), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
    ],
    '`"type": "Tile"`': [
        (with_tile({"type": "Tile"}), ("check",), "'Tile' is no operator of DirectML's"),
        (with_tile({"type": "DML_OPERATOR_Tile"}), ("check",), "try: write a tile as DML_OPERATOR_TILE or TILE"),
    ],
    "a byte order mark": [
        (f"\ufeff{json.dumps(model())}", ("check",), "error[DML-DXDISPATCH-byte-order-mark]"),
    ],
    "text after the model": [
        (f"{json.dumps(model())} and more", ("check",), "'and more' follows the model, and is ignored"),
        (f"{json.dumps(model())} and more", ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
    ],
    "a bind point that the tile has not": [
        (bound(BTensor="In"), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
        (bound(BTensor="In"), ("check",), "note[DML-DXDISPATCH-bind-point]"),
        (bound(BTensor="In"), ("check",), "binds InputTensor and OutputTensor for a tile"),
        (with_tile(tile() | {"bindings": {"BTensor": "In"}}), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
    ],
    "an OutputTensor bound at initialisation": [
        (with_tile(tile() | {"bindings": {"OutputTensor": "Out"}}), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
        (with_tile(tile() | {"bindings": {"OutputTensor": "Out"}}), ("check",), "note[DML-DXDISPATCH-bind-point]"),
        (with_tile(tile() | {"bindings": {"OutputTensor": "Out"}}), ("check",), "when it initialises a tile"),
    ],
    "an InputTensor bound at initialisation that is not owned": [
        (with_tile(tile() | {"bindings": {"InputTensor": "In"}}), ("run",), "error[DML-BINDING-owned]"),
    ],
    "`initialValuesOffsetInBytes`": [
        (printing(values(1, initialValuesOffsetInBytes=4, sizeInBytes=8)), ("run",), "Resource 'R': 1\n"),
        (printing(values(1, initialValuesOffsetInBytes=4, sizeInBytes=8)), ("check",), "note[DML-DXDISPATCH-offset]"),
        (printing(values(1, initialValuesOffsetInBytes=8, sizeInBytes=8)), ("check",), "sizeInBytes is 8; the initial"),
    ],
    "unknown keys, also `NullDesc`": [
        (with_tile(tile(input={"NullDesc": True, "Unknown": None})), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
    ],
    "`print`": [
        (printing(EIGHT_BITS), ("run",), "Resource 'R': 65, 200, 0, 66\n"),
        (printing(values(65, 66, data_type="INT8")), ("run", "--dxdispatch-output"), "Resource 'R': A, B\n"),
    ],
    '`print` with `"verbose": true`': [
        (printing(values(0, 1), verbose=True), ("run",), "Resource 'R':\n[0] 0 (0x00000000)\n[1] 1 (0x3F800000)\n"),
        (printing(values(0, 1), verbose=True), ("run", "--dxdispatch-output"),
         "Resource 'R':\n[0] 0 (0x       0)\n[1] 1 (0x3F800000)\n\n"),
    ],
    "8-bit integers in its own form": [
        (printing(EIGHT_BITS), ("run", "--dxdispatch-output"), "Resource 'R': A, \udcc8, \n"),
    ],
    "`format`, `shape`, `counter`, `threadGroupCount`": [
        (bound(InputTensor=READ_AND_NOT_USED), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
        (bound(InputTensor=READ_AND_NOT_USED | {"format": "R32"}), ("check",), "the name of a DXGI_FORMAT"),
        (bound(InputTensor=READ_AND_NOT_USED | {"counter": "X"}), ("check",), "no resource is called 'X'"),
    ],
    "other operators, shaders, ONNX models": [
        (model(dispatchables=GEMM, commands=[]), ("check",), "gemm: not checked"),
        (model(dispatchables={"net": {"type": "Onnx", "sourcePath": "x"}}, commands=[]), ("check",), "net: not ch"),
        (model(dispatchables=GEMM, commands=[]), ("run",), "note[DML-OPERATOR-not-a-tile]"),
    ],
    "fields of other operators": [(model(dispatchables=GEMM, commands=[]), ("check",), "gemm: not checked")],
    '`"deferred"` resources': [
        (with_input({"initialValues": "deferred", "sizeInBytes": None}), ("check",), "made by ONNX models only"),
    ],
    "several resources for one tensor": [
        (bound(InputTensor=["In", "In"]), ("check",), "2 resources are bound; a tensor takes one"),
        (bound(BTensor=["In", "In"]), ("run",), "Resource 'Out': 1, 2, 1, 2\n"),
    ],
    "a key that appears twice": [
        ('{"resources": {}, "resources": {}, "dispatchables": {}, "commands": []}', ("check",), "appears twice"),
    ],
    "images (.png, .jpg)": [
        (with_input({"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "x.png"}}), ("run",),
         "does not exist"),
    ],
    "text that is not UTF-8, or nested more than 200 deep": [
        (json.dumps(model(comment="\udcff"), ensure_ascii=False), ("check",), "unreadable JSON"),
        (json.dumps(model())[:-1] + f', "x": {"[" * 201}{"]" * 201}}}', ("check",), "unreadable JSON"),
    ],
    "paths": [
        (model(commands=[{"type": "writeFile", "resource": "In", "targetPath": "../x"}]), ("run",), "leads outside"),
    ],
    "memory": [
        (with_input({"initialValuesDataType": "FLOAT32", "initialValues": [1], "sizeInBytes": 2**33}), ("run",),
         "the resources of a model may take"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "command", "expected"),
    [case for cases in FORMS.values() for case in cases],
    ids=[f"{form}-{i}" for form, cases in FORMS.items() for i in range(len(cases))],
)
def test_a_form_is_taken_as_the_page_says(
    call: Call, tmp_path: Path, source: str | Json, command: tuple[str, ...], expected: str
) -> None:
    text = source if isinstance(source, str) else json.dumps(source)
    (tmp_path / "m.json").write_bytes(text.encode(errors="surrogateescape"))
    (tmp_path / "x").mkdir()
    result = call(*command, "m.json")
    printed = result.stdout_bytes.decode(errors="surrogateescape")
    if expected.startswith("Resource"):
        assert (printed, result.exit_code) == (expected, 0)
    else:
        assert expected in printed + result.stderr
        passes = (
            "note[DML-DXDISPATCH" in expected
            or "not ch" in expected
            or "ignored" in expected
            or "binds" in expected
            or "when it" in expected
        )
        assert (result.exit_code == 0) == passes


def test_every_line_of_the_table_is_tested() -> None:
    table = PAGE.split("| form |")[1].split("\n\n")[0].splitlines()[2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in table] == list(FORMS)


def test_a_note_keeps_no_model_from_running(run: Callable[..., str]) -> None:
    data = bound(BTensor="In")
    found = model_findings(Document(data))
    assert [finding.rule for finding in found["/commands/0"]] == ["DML-DXDISPATCH-bind-point"]
    assert run(data, found=found) == "Resource 'Out': 1, 2, 1, 2\n"


def test_of_many_findings_of_one_rule_the_rest_is_counted() -> None:
    bindings = {f"T{i}": "In" for i in range(1000)}
    found = model_findings(Document(bound(**bindings)))["/commands/0"]
    assert [(each.path, each.message.partition(":")[0]) for each in found] == [
        *(("bindings", f"'T{i}' is ignored") for i in range(10)),
        ("bindings", "990 more are like these"),
    ]
    few = {f"T{i}": "In" for i in range(10)}
    assert len(model_findings(Document(bound(**few)))["/commands/0"]) == 10
    halves = {"initialValues": [{"type": "FLOAT16", "value": 1}] * 11}
    *_, last = model_findings(Document(with_input(halves)))["/resources/In"]
    assert (last.rule, last.path) == ("DML-DXDISPATCH-typed-value", "initialValues")
    assert last.message == "1 more are like these"


def test_what_the_parser_refuses_is_not_run(run: Callable[..., str]) -> None:
    data = with_input(values(1, 2, sizeInBytes=None))
    with pytest.raises(RefusedModelError, match="DML-DXDISPATCH-null"):
        run(data, found=model_findings(Document(data)))


def test_an_owned_input_may_have_unknown_bind_points_beside_it(run: Callable[..., str]) -> None:
    owned = OWNED | {"bindings": {"InputTensor": "In", "BTensor": "In", "OutputTensor": "In"}}
    data = with_tile(owned)
    data["commands"][0]["bindings"] = {"OutputTensor": "Out", "BTensor": "In"}
    assert run(data) == "Resource 'Out': 1, 2, 1, 2\n"


def test_a_wrong_name_of_a_type_is_a_problem_still() -> None:
    with pytest.raises(InputError, match=r"InputTensor\.DataType"):
        read_model(with_tile(tile(input={"DataType": "float32"})))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}}',
            "a JSON Schema was provided",
        ),
        ('{"name": "package", "type": "module"}', "an object was provided, but a tile"),
        ('{"Type": 67, "Desc": null}', "DML_OPERATOR_GATHER is not a tile"),
        ('{"Type": "DML_OPERATOR_SLICE", "Desc": {}}', "DML_OPERATOR_SLICE is not a tile; only tiles are checked\n"),
        ('{"Type": "Tile", "Desc": {}}', "DML_OPERATOR_Tile is not a tile; only tiles are checked\n"),
        ('{"Type": "Tile", "Repeats": []}', "an object was provided, but a tile"),
    ],
)
def test_what_is_no_tile_is_told_as_what_it_is(check: Call, text: str, told: str) -> None:
    result = check("-", stdin=text)
    assert told in result.stdout + result.stderr
    assert ("was provided" in told) == (result.exit_code == 2)
