"""Each line of the table in docs/dxdispatch.md, which says form by form what is done with a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dml_tile.dxdispatch.rules import model_findings, model_parts
from dml_tile.json_text import Document
from tests.helpers.command_line import Call
from tests.helpers.dxdispatch_models import (
    OWNED,
    Json,
    dispatch,
    model,
    printing,
    show,
    source,
    tile_json,
    values,
    write_file,
)

PAGE: Final = (Path(__file__).parent.parent / "docs" / "dxdispatch.md").read_text()


def tile(**fields: Any) -> Json:
    """A dispatchable with some of its tile's fields replaced."""
    return {"type": "TILE", "desc": tile_json([2], [2], **fields)}


def with_tile(dispatchable: Json) -> Json:
    return model(dispatchables={"tile": dispatchable})


def with_input(resource: Json) -> Json:
    return model(resources={"In": resource, "Out": model()["resources"]["Out"]})


def bound(**bindings: Any) -> Json:
    data = model()
    data["commands"][0]["bindings"] |= bindings
    return data


EIGHT_BITS: Final = values(65, 200, 0, 66, data_type="UINT8")
ONNX: Final = {"type": "Onnx", "sourcePath": "x"}
MATRIX: Final[Json] = {"DataType": "FLOAT32", "Sizes": [2, 2]}
GEMM: Final[Json] = {
    "type": "GEMM",
    "desc": {
        **dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), MATRIX),
        **dict.fromkeys(("TransA", "TransB"), "DML_MATRIX_TRANSFORM_NONE"),
        "Alpha": 1.0,
        "Beta": 1.0,
    },
}
FILL: Final[Json] = {
    "type": "FILL_VALUE_CONSTANT",
    "desc": {"OutputTensor": MATRIX, "ValueDataType": "FLOAT32", "Value": {"Float32": "-Inf"}},
}
RELU: Final[Json] = {"type": "ACTIVATION_RELU", "desc": {"InputTensor": MATRIX, "OutputTensor": MATRIX}}
JOIN: Final[Json] = {
    "type": "JOIN",
    "desc": {"InputCount": 2, "InputTensors": [MATRIX, MATRIX], "OutputTensor": MATRIX | {"Sizes": [4, 2]}, "Axis": 0},
}
ALL_BOUND: Final = {"InputTensor": "In", "BTensor": "In", "OutputTensor": "In"}
READ_AND_NOT_USED: Final = {"name": "In", "format": "DXGI_FORMAT_R32_FLOAT", "shape": [2], "counter": "In"}


def dispatching(dispatchable: Json) -> Json:
    """A model that has this dispatchable, and does nothing with it."""
    return model(dispatchables={"one": dispatchable}, commands=[])


def gemm(**fields: Any) -> Json:
    """A model with a GEMM of which some fields are replaced."""
    return dispatching(GEMM | {"desc": GEMM["desc"] | fields})


def relu(**fields: Any) -> Json:
    """A model with an ACTIVATION_RELU of whose input some fields are replaced."""
    return dispatching(RELU | {"desc": RELU["desc"] | {"InputTensor": MATRIX | fields}})


def join(**fields: Any) -> Json:
    return dispatching(JOIN | {"desc": JOIN["desc"] | fields})


def sum_up(**fields: Any) -> Json:
    desc = RELU["desc"] | {"Axis": 1, "AxisDirection": "INCREASING"} | fields
    return dispatching({"type": "CUMULATIVE_SUMMATION", "desc": desc})


def reduce(**fields: Any) -> Json:
    return dispatching({"type": "REDUCE", "desc": RELU["desc"] | {"Function": "SUM"} | fields})


def relu_of_400(options: Json) -> Json:
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 400]}
    return dispatching({"type": "ACTIVATION_RELU", "desc": dict.fromkeys(RELU["desc"], tensor)} | options)


def identity(scale_bias: Json) -> Json:
    return dispatching({"type": "ELEMENT_WISE_IDENTITY", "desc": RELU["desc"] | {"ScaleBias": scale_bias}})


ADD: Final[Json] = {"type": "ELEMENT_WISE_ADD", "desc": dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), MATRIX)}


def owned_add(bindings: Json) -> Json:
    """An ELEMENT_WISE_ADD of which DirectML owns an input."""
    desc = ADD["desc"] | {"BTensor": MATRIX | {"Flags": "OWNED_BY_DML"}}
    return ADD | {"desc": desc, "bindings": bindings}


def bind(dispatchable: Json, **bindings: Any) -> Json:
    """A model that dispatches an operator with these bindings."""
    resources = {
        "In": values(1, 2, 3, 4),
        "Out": values(1, 2, 3, 4),
        "Small": values(1, 2),
        "Wide": values(*range(8)),
        "Twice": values(*range(8)),
        "File": source("plain.npy"),
    }
    return model(resources=resources, dispatchables={"one": dispatchable}, commands=[dispatch("one", **bindings)])


BEHIND: Final = {"name": "In", "elementOffset": 4}
AS_GRAPH: Final = {"dmlCompileType": "DmlCompileGraph"}
RUN: Final = ("run",)
AS_DXDISPATCH: Final = ("run", "--dxdispatch-output")
CHECK: Final = ("check",)
EMIT: Final = ("emit", "--lang", "json")
TILED: Final = "Resource 'Out': 1, 2, 1, 2\n"

# The first cell of a line of the table: a text or a model, the arguments of a command, and what it prints or complains.
FORMS: Final[dict[str, list[tuple[str | Json, tuple[str, ...], str]]]] = {
    "FLOAT16 values": [(printing(values(1.2, 65520, data_type="FLOAT16")), RUN, "Resource 'R': 1.19922, 65504\n")],
    "FLOAT16 sequences": [
        (printing({"initialValuesDataType": "FLOAT16",
                   "initialValues": {"valueCount": 4, "valueStart": 2048, "valueDelta": 1.5}}),
         RUN, "Resource 'R': 2048, 2048, 2048, 2048\n"),
    ],
    '`"Strides": null`, `"Repeats": null`, `"sizeInBytes": null`': [
        (with_tile(tile(input={"Strides": None})), CHECK, "error[DML-DXDISPATCH-null]"),
        (with_tile(tile(Repeats=None)), CHECK, "error[DML-DXDISPATCH-null]"),
        (with_input(values(1, 2, sizeInBytes=None)), CHECK,
         "#/resources/In: refused at 6_4\n  resource\n  error[DML-DXDISPATCH-null] DirectML is not called\n"),
    ],
    '`"DataType": 1`, numbers for `Flags`, `Type` and `executionFlags`': [
        (with_tile(tile(input={"DataType": 1})), CHECK, "InputTensor.DataType: is 1; DxDispatch's parser"),
        (with_tile(tile(input={"DataType": "float32"})), CHECK, "/InputTensor/DataType: InputTensor.DataType is"),
        (with_tile(tile(input={"Flags": [0]})), CHECK, "InputTensor.Flags"),
        (with_tile(tile(output={"Type": 1})), CHECK, "OutputTensor.Type: is 1"),
        (with_tile(tile() | {"executionFlags": 0}), CHECK, "executionFlags: is 0"),
    ],
    '`"TransA": 0`, `"IncludePadding": 1`, `"FusedActivation": {"Type": 47}`': [
        (gemm(TransA=0), CHECK, "TransA: is 0; DxDispatch's parser takes names only"),
        (gemm(BTensor=MATRIX | {"DataType": 1}), CHECK, "BTensor.DataType: is 1; DxDispatch's parser takes names only"),
        (gemm(FusedActivation={"Type": 47}), CHECK, "FusedActivation.Type: is 47; DxDispatch's parser takes names"),
        (gemm(FusedActivation={"Type": "ACTIVATION_RELU"}), CHECK, ": accepted at 6_4"),
        (join(InputTensors=[MATRIX, MATRIX | {"DataType": 1}]), CHECK, "InputTensors[1].DataType: is 1; DxDispatch's"),
        *(
            (sum_up(HasExclusiveSum=value), CHECK, text)
            for value, text in [(1, "HasExclusiveSum: is 1; DxDispatch's parser takes true or"), (True, ": accepted")]
        ),
    ],
    '`"CTensor": null`, `"Axes": null`, `"FusedActivation": null`': [
        (gemm(CTensor=None), CHECK, "CTensor: is null, which DxDispatch's parser refuses"),
        (gemm(FusedActivation=None), CHECK, "FusedActivation: is null, which DxDispatch's parser refuses"),
        (gemm(BTensor=MATRIX | {"Strides": None}), CHECK, "BTensor.Strides: is null, which DxDispatch's parser"),
        (reduce(AxisCount=0, Axes=None), CHECK, "Axes: is null, which DxDispatch's parser refuses"),
        (reduce(AxisCount=0, Axes=[]), CHECK, ": accepted at 6_4"),
    ],
    "a count that is left out, as CONVOLUTION's `DimensionCount`": [
        (reduce(Axes=[1]), CHECK, "one: AxisCount is missing; DxDispatch requires it"),
        (dispatching({"type": "CONVOLUTION"}), CHECK, "one: DimensionCount is missing; DxDispatch requires it; Input"),
        (gemm(FusedActivation={"Type": "ACTIVATION_SOFTMAX1", "Axes": [1]}), CHECK,
         "one: FusedActivation.AxisCount is missing; DxDispatch requires it"),
        (gemm(FusedActivation={"Type": "ACTIVATION_SOFTMAX1", "Axes": [1], "AxisCount": 1}), CHECK, ": accepted at"),
    ],
    "FLOAT16 among typed values": [
        (with_input(values({"type": "FLOAT16", "value": 1}, {"type": "UINT64", "value": 1}, data_type="UNKNOWN")),
         CHECK, "error[DML-DXDISPATCH-typed-value]"),
    ],
    "an integer among floats that no double holds": [
        (with_input(values(2**53 + 1, 2)), CHECK, "initialValues[0]: is 9007199254740993, which no FLOAT64"),
    ],
    "a number beyond a double": [(with_input(values(10**400, 2)), CHECK, "which is beyond a FLOAT64")],
    '`"Type": "TILE"` alone in a dispatchable': [
        (with_tile({"Type": "TILE", "desc": tile_json([2], [2])}), CHECK, "error[DML-DXDISPATCH-type]"),
    ],
    "both `type` and `Type`": [(with_tile(tile() | {"type": "GEMM", "Type": "TILE"}), RUN, TILED)],
    '`"type": "Tile"`': [
        (with_tile({"type": "Tile"}), CHECK, "'Tile' is no operator of DirectML's"),
        (with_tile({"type": "DML_OPERATOR_Tile"}), CHECK, "try: write DML_OPERATOR_TILE"),
        (with_tile({"type": "DML_OPERATOR_ELEMENTWISE_ADD"}), CHECK, "try: write DML_OPERATOR_ELEMENT_WISE_ADD"),
        (with_tile({"type": "frobnicate"}), CHECK, "try: docs/operators.md has all names"),
    ],
    "a byte order mark": [(f"\ufeff{json.dumps(model())}", CHECK, "error[DML-DXDISPATCH-byte-order-mark]")],
    "text after the model": [
        (f"{json.dumps(model())} and more", CHECK, "'and more' follows the model, and is ignored"),
        (f"{json.dumps(model())} and more", RUN, TILED),
    ],
    "a bind point that the tile has not": [
        (bind(ADD, ATensor="In", BTensor="In", CTensor="In", OutputTensor="In"), CHECK,
         "'CTensor' is ignored: DxDispatch binds ATensor, BTensor and OutputTensor for ELEMENT_WISE_ADD"),
        (bound(BTensor="In"), RUN, TILED),
        (bound(BTensor="In"), CHECK, "note[DML-DXDISPATCH-bind-point]"),
        (bound(BTensor="In"), CHECK, "binds InputTensor and OutputTensor for a tile"),
        (with_tile(tile() | {"bindings": {"BTensor": "In"}}), RUN, TILED),
        (model(dispatchables={"tile": OWNED | {"bindings": ALL_BOUND}},
               commands=[dispatch(OutputTensor="Out", BTensor="In"), show("Out")]), RUN, TILED),
    ],
    "an OutputTensor bound at initialisation": [
        (bind(owned_add({"BTensor": "In", "OutputTensor": "In"}), ATensor="In", OutputTensor="Out"), CHECK,
         "'OutputTensor' is ignored: DxDispatch binds ATensor and BTensor when it initialises ELEMENT_WISE_ADD"),
        (dispatching(FILL | {"bindings": {"OutputTensor": "In"}}), CHECK,
         "'OutputTensor' is ignored: DxDispatch binds nothing when it initialises FILL_VALUE_CONSTANT"),
        (with_tile(tile() | {"bindings": {"OutputTensor": "Out"}}), RUN, TILED),
        (with_tile(tile() | {"bindings": {"OutputTensor": "Out"}}), CHECK, "when it initialises a tile"),
    ],
    "an InputTensor bound at initialisation that is not owned": [
        (with_tile(tile() | {"bindings": {"InputTensor": "In"}}), RUN, "error[DML-BINDING-owned]"),
    ],
    "`initialValuesOffsetInBytes`": [
        (printing(values(1, initialValuesOffsetInBytes=4, sizeInBytes=8)), RUN, "Resource 'R': 1\n"),
        (printing(values(1, initialValuesOffsetInBytes=4, sizeInBytes=8)), CHECK, "note[DML-DXDISPATCH-offset]"),
        (printing(values(1, initialValuesOffsetInBytes=8, sizeInBytes=8)), CHECK, "R/sizeInBytes: sizeInBytes is 8;"),
    ],
    "`elementOffset` behind the resource": [
        *((bound(InputTensor=BEHIND), command, "InputTensor: begins at byte 16, but the resource has 8")
          for command in (RUN, CHECK)),
        (bind(ADD, ATensor="In", BTensor=BEHIND | {"elementOffset": 400}, OutputTensor="Out"), CHECK,
         "BTensor: begins at byte 1600, but the resource has 16"),
    ],
    '`"dmlCompileType": "DmlCompileGraph"` below 2_1': [
        (with_tile(tile() | AS_GRAPH), (*command, "--target", "2_0"), "error[DML-DXDISPATCH-dmlCompileType]")
        for command in (RUN, CHECK)
    ]
    + [
        (dispatching(RELU | AS_GRAPH), (*CHECK, "--target", "2_0"), "error[DML-DXDISPATCH-dmlCompileType]"),
        (relu_of_400(AS_GRAPH), CHECK, ": accepted at 6_4; lowest level 2_1"),
        (relu_of_400({}), CHECK, ": accepted at 6_4; lowest level 1_0"),
        (dispatching({"type": "hlsl"} | AS_GRAPH), (*CHECK, "--target", "2_0"), "one: elsewhere at 2_0\n  shader\n"),
    ],
    "any model below 2_1": [
        (model(), (*RUN, "--target", "2_0"), "error[DML-DXDISPATCH-IDMLDevice1]"),
        (dispatching({"type": "hlsl"} | AS_GRAPH), (*CHECK, "--target", "2_0"), "note[DML-DXDISPATCH-IDMLDevice1]"),
    ],
    "unknown keys, also `NullDesc`": [(with_tile(tile(input={"NullDesc": True, "Unknown": None})), RUN, TILED)],
    "`print`": [
        (printing(EIGHT_BITS), RUN, "Resource 'R': 65, 200, 0, 66\n"),
        (printing(values(65, 66, data_type="INT8")), AS_DXDISPATCH, "Resource 'R': A, B\n"),
    ],
    '`print` with `"verbose": true`': [
        (printing(values(0, 1), verbose=True), RUN, "Resource 'R':\n[0] 0 (0x00000000)\n[1] 1 (0x3F800000)\n"),
        (printing(values(0, 1), verbose=True), AS_DXDISPATCH,
         "Resource 'R':\n[0] 0 (0x       0)\n[1] 1 (0x3F800000)\n\n"),
    ],
    "8-bit integers in its own form": [(printing(EIGHT_BITS), AS_DXDISPATCH, "Resource 'R': A, \udcc8, \n")],
    "`format`, `shape`, `counter`, `threadGroupCount`": [
        (bound(InputTensor=READ_AND_NOT_USED), RUN, TILED),
        (bound(InputTensor=READ_AND_NOT_USED | {"format": "R32"}), CHECK, "the name of a DXGI_FORMAT"),
        (bound(InputTensor=READ_AND_NOT_USED | {"counter": "X"}), CHECK, "no resource is called 'X'"),
    ],
    "other operators": [
        (dispatching(GEMM), CHECK, ": accepted at 6_4; lowest level 4_0"),
        (dispatching(GEMM), RUN, "dml-tile: not DirectML's in every byte: GEMM: values within"),
        (dispatching({"type": "GEMM"}), RUN, "one: ATensor is missing"),
        (dispatching({**GEMM["desc"], "type": "DML_OPERATOR_GEMM", "comment": 1}), CHECK, ": accepted at 6_4"),
        (dispatching({"type": "GEMM", "desc": GEMM["desc"] | {"TransA": "NO"}}), CHECK, "one: TransA is 'NO'"),
        (dispatching({"type": "GEMM"}), CHECK, "one: ATensor is missing"),
        (dispatching(FILL), CHECK, ": accepted at 6_4"),
        (dispatching({"type": "FILL_VALUE_CONSTANT", "desc": []}), CHECK, "/dispatchables/one"),
        (dispatching(RELU | {"desc": {}, "Desc": RELU["desc"]}), CHECK, ": accepted at 6_4"),
        (relu(comment=1, Strides=[], TotalTensorSizeInBytes=0), CHECK, ": accepted at 6_4"),
        (relu(Desc=MATRIX | {"comment": 1}, Type="BUFFER"), CHECK, ": accepted at 6_4"),
        (identity({"Scale": 1, "Bias": "inf", "comment": 1}), CHECK, ": accepted at 6_4"),
        (gemm(FusedActivation=RELU | {"desc": {"InputTensor": 5, "comment": 1}}), CHECK, ": accepted at 6_4"),
        (gemm(FusedActivation=5), CHECK, "one: FusedActivation is 5"),
        (gemm(FusedActivation={"type": "ACTIVATION_RELU", "desc": 5}), CHECK, "one: FusedActivation"),
        (join(InputTensors=[]), CHECK, "crash[DML-OPERATOR-array]"),
    ],
    "shaders, ONNX models, serialized graphs": [
        (dispatching({"type": "hlsl"}), CHECK, "one: elsewhere"),
        (dispatching(ONNX), CHECK, "one: elsewhere"),
        (dispatching({"type": "dmlSerializedGraph"}), CHECK, "one: elsewhere"),
        (dispatching(ONNX), RUN, "note[DML-OPERATOR-not-a-tile]"),
    ],
    '`"deferred"` resources': [
        (with_input({"initialValues": "deferred", "sizeInBytes": None}), CHECK, "made by ONNX models only"),
        (model(resources={"Y": {"initialValues": "deferred"}}, dispatchables={"one": ONNX}, commands=[]), CHECK,
         "one: elsewhere"),
    ],
    "a tensor that is not bound, or to too small a resource": [
        (bind(ADD, ATensor="In", OutputTensor="Out"), CHECK, "BTensor: nothing is bound at execution"),
        (bind(ADD, ATensor="In", BTensor="In", OutputTensor="Out"), CHECK, ": accepted at 6_4"),
        (bind(ADD, ATensor="Out", BTensor="Small", OutputTensor="Out"), CHECK,
         "BTensor: the value of SizeInBytes is too small. 8 was provided, but at least 16 was expected"),
        (bind(ADD, ATensor="Out", BTensor={"name": "In", "elementOffset": 4}, OutputTensor="Out"), CHECK,
         "BTensor: the value of SizeInBytes is too small. 0 was provided"),
        (bind(ADD, ATensor="Out", BTensor={"name": "Wide", "elementOffset": 1}, OutputTensor="Out"), CHECK,
         "BTensor: the value of Offset is misaligned. 4 is not a multiple of 16"),
        (bind(ADD, ATensor="Out", BTensor={"name": "Wide", "elementOffset": 4}, OutputTensor="Out"), CHECK,
         ": accepted at 6_4"),
        (bind(ADD, ATensor="File", BTensor={"name": "File", "elementOffset": 1}, OutputTensor="Out"), CHECK,
         ": accepted at 6_4"),
        (bind(ADD | AS_GRAPH, ATensor="Out", BTensor="Small", OutputTensor="Out"), CHECK, "(DirectML does not notice)"),
        *((model(dispatchables={"tile": tile() | AS_GRAPH}, commands=[dispatch(InputTensor="In", OutputTensor="In")]),
           command, "(DirectML does not notice)") for command in (RUN, CHECK)),
        (bind(GEMM, ATensor="In", BTensor="In", OutputTensor="Out"), CHECK, ": accepted at 6_4"),
        (bind(GEMM, ATensor="In", BTensor="In", CTensor="In", OutputTensor="Out"), CHECK,
         "CTensor: is bound at execution, though the operator's is null"),
        (bind(owned_add({"BTensor": "In"}), ATensor="In", OutputTensor="Out"), CHECK, ": accepted at 6_4"),
        (bind(owned_add({"BTensor": "In"}), ATensor="In", BTensor="In", OutputTensor="Out"), CHECK,
         "BTensor: is bound at execution, though its Flags say OWNED_BY_DML"),
        (bind(owned_add({}), ATensor="In", OutputTensor="Out"), CHECK, "BTensor: nothing is bound at initialisation"),
        (bind(owned_add({"BTensor": "X"}), ATensor="In", OutputTensor="Out"), CHECK,
         "one/bindings/BTensor: no resource is called 'X'"),
        (bind(JOIN, InputTensors=["In", "Small"], OutputTensor="Twice"), CHECK, "InputTensors[1]: the value of SizeIn"),
        (bind(JOIN, OutputTensor="Twice"), CHECK, "InputTensors[0], InputTensors[1]: nothing is bound at execution"),
        (bound(InputTensor={"name": "In", "elementOffset": 1}), CHECK, "InputTensor: the value of Offset is mis"),
        (model(commands=[dispatch(InputTensor="In")]), CHECK, "OutputTensor: nothing is bound at execution"),
    ],
    "several resources for an array of tensors": [
        (bind(JOIN, InputTensors=["In", "In"], OutputTensor="Twice"), CHECK, ": accepted at 6_4"),
        (bind(JOIN, InputTensors="In", OutputTensor="Twice"), CHECK,
         "commands/0/bindings/InputTensors: 1 resource is bound; InputCount is 2"),
        (bind(JOIN, InputTensors=["In", "In"], OutputTensor=["Twice"] * 2), CHECK,
         "commands/0/bindings/OutputTensor: 2 resources are bound; a tensor takes one"),
    ],
    "several resources for one tensor": [
        (bound(InputTensor=["In", "In"]), CHECK, "2 resources are bound; a tensor takes one"),
        (bound(BTensor=["In", "In"]), RUN, TILED),
    ],
    "an empty list of resources for a tensor": [
        (bound(InputTensor=[]), CHECK, "tile: accepted at 6_4"),
        (bound(InputTensor=[]), RUN, "commands/0/bindings/InputTensor: no resource is bound; a tensor takes one"),
        (with_tile(OWNED | {"bindings": {"InputTensor": []}}), RUN, "tile/bindings/InputTensor: no resource is bound"),
        (with_tile(tile() | {"bindings": {"OutputTensor": []}}), RUN, TILED),
    ],
    '`"DimensionCount": 0` with sizes': [
        (with_tile(tile(input={"DimensionCount": 0, "Sizes": [6, 5]})), EMIT, '"TotalTensorSizeInBytes": 24,'),
        (with_tile(tile(input={"DimensionCount": 0, "Sizes": [6], "Strides": [9]})), EMIT,
         '"TotalTensorSizeInBytes": 4,'),
        (with_tile(tile(input={"DimensionCount": 0, "Sizes": [9], "DataType": "UINT4"})), EMIT,
         '"TotalTensorSizeInBytes": 8,'),
    ],
    ".npy in Fortran order": [(printing(source("fortran.npy")), RUN, "its values are in Fortran order")],
    ".npy of big-endian values": [(printing(source("big.npy")), RUN, "holds >f4, in the other byte order")],
    ".npy of bool": [
        (printing(source("bool.npy", "INT8")), RUN, "Resource 'R': 0, 1\n"),
        (printing(source("bool.npy", "UINT8")), RUN, "holds INT8, but initialValuesDataType is"),
    ],
    ".npy of format 3.0": [(printing(source("three.npy")), RUN, "Resource 'R': 0, 1\n")],
    ".npy with fewer bytes than its header promises": [
        (printing(source("short.npy")), RUN, "promises 16 bytes of values, but it has 15"),
    ],
    ".npy with bytes after the array": [
        (printing(source("long.npy")), RUN, "promises 16 bytes of values, but it has 17"),
    ],
    ".npy of a type that DirectML lacks": [
        (printing(source("complex.npy", "FLOAT32")), RUN, "holds complex64, which is no tensor data type"),
    ],
    "a key that appears twice": [
        ('{"resources": {}, "resources": {}, "dispatchables": {}, "commands": []}', CHECK, "appears twice"),
    ],
    "images (.png, .jpg)": [(with_input(source("x.png", "UINT8")), RUN, "does not exist")],
    "text that is not UTF-8, or nested more than 200 deep": [
        (json.dumps(model(comment="\udcff"), ensure_ascii=False), CHECK, "unreadable JSON"),
        (json.dumps(model())[:-1] + f', "x": {"[" * 201}{"]" * 201}}}', CHECK, "unreadable JSON"),
    ],
    "paths": [(model(commands=[write_file("In", "../x")]), RUN, "leads outside")],
    "memory": [(with_input(values(1, sizeInBytes=2**33)), RUN, "the resources of a model may take")],
    "files, text, time": [],  # tests/test_costs.py
}  # fmt: skip


PASSING: Final = (
    "note[DML-DXDISPATCH",
    "in every byte",
    "elsewhere",
    ": accepted",
    "ignored",
    "binds",
    "when it",
    "TotalTensorSize",
)
"""What is expected of models that are taken, besides what they print."""


def write_arrays(folder: Path) -> None:
    """Write .npy files of [0, 1], each with what its name says."""
    plain = np.arange(2, dtype=np.float64)
    arrays = {"fortran": np.zeros((2, 2), order="F"), "big": plain.astype(">f4"), "bool": plain.astype(np.bool_),
              "complex": plain.astype(np.complex64), "plain": plain}  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    contents = (folder / "plain.npy").read_bytes()
    (folder / "short.npy").write_bytes(contents[:-1])
    (folder / "long.npy").write_bytes(contents + b"\0")
    with (folder / "three.npy").open("wb") as file:
        np.lib.format.write_array(file, plain, version=(3, 0))


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
    if ".npy" in text:
        write_arrays(tmp_path)
    result = call(*command, "m.json")
    printed = result.stdout_bytes.decode(errors="surrogateescape")
    if expected.startswith("Resource"):
        assert (printed, result.exit_code) == (expected, 0)
    else:
        assert expected in printed + result.stderr
        passes = any(word in expected for word in PASSING)
        assert (result.exit_code == 0) == passes


def test_every_line_of_the_table_is_tested() -> None:
    table = PAGE.split("| form |")[1].split("\n\n")[0].splitlines()[2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in table] == list(FORMS)


def test_a_part_that_is_no_operator_is_counted_apart(call: Call, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(with_input(values(1, 2, sizeInBytes=None))))
    assert call(*CHECK, "m.json").stdout.endswith("\n1 operator: 1 accepted; 1 resource refused\n")
    assert json.loads(call(*CHECK, "m.json", "--format", "json").stdout)["sources"][0]["operators"] == 1
    assert "Operators (1)" in call(*CHECK, "m.json", "--format", "html").stdout


def test_of_many_findings_of_one_rule_the_rest_is_counted() -> None:
    bindings = {f"T{i}": "In" for i in range(1000)}
    found = model_findings(dict(model_parts(Document(bound(**bindings)))))["/commands/0"]
    assert [(each.path, each.message.partition(":")[0]) for each in found] == [
        *(("bindings", f"'T{i}' is ignored") for i in range(10)),
        ("bindings", "990 more are like these"),
    ]
    few = bound(**{f"T{i}": "In" for i in range(10)})
    assert len(model_findings(dict(model_parts(Document(few))))["/commands/0"]) == 10
    halves = {"initialValues": [{"type": "FLOAT16", "value": 1}] * 11}
    *_, last = model_findings(dict(model_parts(Document(with_input(halves)))))["/resources/In"]
    assert (last.rule, last.path) == ("DML-DXDISPATCH-typed-value", "initialValues")
    assert last.message == "1 more are like these"
