"""Descriptors in JSON of each form, and the positions of their findings: the line and column of the value."""

from __future__ import annotations

import gc
import json
import re
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.descriptors.operator import UNKNOWN_STRUCT, OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.errors import InputError
from dml_tile.findings import Finding, Position, unreadable
from dml_tile.json_text import SourceText, parse_json
from dml_tile.readers import descriptors as documents
from dml_tile.readers.descriptors import parse_source, read_document, read_lines, read_source
from dml_tile.readers.item import Item, ItemOrProblem
from dml_tile.text import json_pointer
from tests.helpers.check_files import FLAT, TILE, WITHOUT_FIELDS
from tests.helpers.hostile_names import CHARACTERS

pytestmark = pytest.mark.usefixtures("call")
BARE = TileOperatorDesc.model_validate(TILE)
OPERATOR = OperatorDesc(type=70, desc=BARE)


MODEL: dict[str, Any] = {"resources": {}, "dispatchables": {}, "commands": []}
LINE = json.dumps(TILE)


def parts(value: Any) -> list[Any]:
    return list(read_document(value if isinstance(value, bytes) else json.dumps(value).encode()))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TILE, [Item("", BARE)]),
        ({"input_tensor": FLAT, "output_tensor": FLAT, "repeats": [1]}, [Item("", BARE)]),
        ({"Type": "DML_OPERATOR_TILE", "Desc": TILE}, [Item("", OPERATOR)]),
        ({"type": "TILE", "desc": TILE}, [Item("", OPERATOR)]),
        ({"Type": 70} | TILE, [Item("", OPERATOR)]),
        ({"Type": "TILE", "Desc": None}, [Item("", OperatorDesc(type=70, desc=None))]),
        ({"Type": 999, "Desc": {"Foo": 1}}, [Item("", OperatorDesc(type=999, desc=UNKNOWN_STRUCT))]),
        ({"Type": 999, "Desc": None}, [Item("", OperatorDesc(type=999, desc=None))]),
        ({"Type": "GEMM", "Desc": None}, [Item("", OperatorDesc(type="GEMM", desc=None))]),
        (WITHOUT_FIELDS, [Item("/operator", "DML_OPERATOR_GATHER")]),
        (WITHOUT_FIELDS | {"operator": {"Type": "NEW"}}, [Item("/operator", "DML_OPERATOR_NEW")]),
        (None, [Item("")]),
        ([TILE, None, {"Type": 70} | TILE], [Item("/0", BARE), Item("/1"), Item("/2", OPERATOR)]),
        ([], []),
    ],
)
def test_descriptors_are_found_with_their_pointers(value: Any, expected: list[ItemOrProblem]) -> None:
    assert parts(value) == expected


def test_what_can_be_read_of_a_broken_model_is() -> None:
    dispatchables = {"good": {"type": "TILE", "desc": TILE | {"RepeatsCount": 1}}, "bad": {"type": "TILE", "desc": 3}}
    assert parts({"resources": {}, "dispatchables": dispatchables}) == [
        unreadable("/dispatchables/bad/desc", "desc is 3; an object was expected"),
        unreadable("", "commands is missing"),
        Item("/dispatchables/good", OPERATOR),
        Item(""),  # the model
    ]
    assert parts({"dispatchables": 7})[0] == unreadable("", "resources is missing")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{line}\n{other}\n{{\nnull\n", ["/0", "/1", "/2: unreadable JSON: EOF", "/3"]),
        ("{line}\r\n{other}\r\n{{\r\nnull\r\n", ["/0", "/1", "/2: unreadable JSON: EOF", "/3"]),
        ("{line}\n\n{other}\n\n{{\n\nnull\n\n", ["/0", "/2", "/4: unreadable JSON: EOF", "/6"]),
        ("{line}\n\n[1 2]\n", ["/0", "/2: unreadable JSON: expected `,` or `]` at line 3 column 4"]),
        ("{{bad\n{line}", ["/0: unreadable JSON: key must be a string", "/1"]),
    ],
)
def test_json_lines_are_recognised(text: str, expected: list[str]) -> None:
    found = parts(text.format(line=LINE, other='{"Type": "GEMM", "Desc": null}').encode())
    assert Item("/1" if expected[0] != "/0" else "/0", BARE) in found
    for part, beginning in zip(found, expected, strict=True):
        assert (part.text if isinstance(part, Finding) else part.pointer).startswith(beginning)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "^is empty$"),
        (b'{"InputTensor": {', "unreadable JSON: EOF while parsing"),
        (b"{\n{", "unreadable JSON"),
        *((blanks, "^is empty$") for blanks in (b"\n\n", b" \n\t\r\n")),
        *((blanks, "unreadable JSON") for blanks in (b"\x00\n", b"\xef\xbb\xbf\n")),
        (3, "3 was provided, but a tile .* was expected"),
        ({"a": 1}, "an object was provided, but a tile"),
        ({"InputTensor": None}, "OutputTensor is missing; Repeats is missing"),
        (TILE | {"Repeat": [1]}, r"Repeat is unknown \(did you mean Repeats\?\)"),
        (TILE | {"InputTensor": {"Stride": [1]} | FLAT}, r"InputTensor.Stride is unknown \(did you mean Strides\?\)"),
        (
            TILE | {"InputTensor": {"Datatype": "FLOAT32", "Size": [1]}},
            r"^InputTensor.Datatype is unknown \(.*DataType\?\); InputTensor.Size is unknown \(.*Sizes\?\)$",
        ),
        (TILE | {"InputTensor": {"Colour": 1, "Sizes": [1]}}, "^InputTensor.DataType is missing; InputTensor.Colour"),
        (TILE | {"Sizes": [1]}, "^Sizes is unknown here$"),
        (TILE | {"Repeats": [-1]}, r"Repeats\[0\] is -1; an integer from 0 to 4294967295 was expected"),
        (TILE | {"Repeats": 7}, "Repeats is 7; an array was expected"),
        (TILE | {"RepeatsCount": 2**32}, "RepeatsCount is 4294967296; an integer from 0 to 4294967295 was expected"),
        (TILE | {"InputTensor": 5}, "InputTensor is 5; an object was expected"),
        (TILE | {"InputTensor": FLAT | {"DataType": "F32"}}, "DataType is 'F32'; no enumerator has this name"),
        ([MODEL], "a DxDispatch model was provided, which has to be"),
        (MODEL | {"resources": {"R": {"initialValues": [None]}}}, "null; an object was expected"),
        (MODEL | {"resources": {"R": {"initialValues": "deferred"}}}, "deferred resources"),
        (b'{"Repeats": [1], "Repeats": [2]}', "the name 'Repeats' appears twice"),
        (TILE | {"Repeats": [-1] * 1000}, r"^Repeats\[0\] is -1; an integer from 0 to 4294967295 was expected$"),
        (
            {"InputTensor": FLAT, "IndicesTensor": FLAT, "OutputTensor": FLAT, "Axis": 0, "IndexDimensions": 1},
            "^Type is missing; a descriptor without it is a tile's, which has no IndicesTensor$",
        ),
        ({"InputTensor": FLAT, "OutputTensor": FLAT, "Repeat": [1]}, "^Repeat is unknown"),
        (TILE | {"Axis": 0}, "^Axis is unknown"),
        ({"Type": -1}, "Type is -1"),
        ({"Type": "Tile", "Repeats": []}, r"^Type is 'Tile'; an operator of DirectML.h was .*\(did you mean TILE\?\)$"),
        ({"name": "package", "type": "module"}, "an object was provided, but a tile"),
        ({"$schema": "mine.json", "type": "object", "properties": {}}, "^a JSON Schema was provided"),
        (
            {"base_code": {"magic": "pir", "version": 1}, "program": {"regions": []}},
            "^is a Paddle 3 model, which is not",
        ),
        ({"Type": "GATHER"}, "^InputTensor is missing; IndicesTensor is missing"),
        ({"Type": "TILE"}, "^InputTensor is missing; OutputTensor is missing"),
    ],
)
def test_what_cannot_be_read_is_reported_by_field_value_and_expectation(value: Any, message: str) -> None:
    problems = [part for part in parts(value) if isinstance(part, Finding)]
    assert len(problems) == 1
    with pytest.raises(InputError, match=message):
        raise InputError(problems)


FILL: dict[str, Any] = {"Type": "FILL_VALUE_CONSTANT", "OutputTensor": FLAT}
CLIP: dict[str, Any] = {"Type": "ELEMENT_WISE_CLIP1", "InputTensor": FLAT, "OutputTensor": FLAT}
ELU: dict[str, Any] = {"Type": "ACTIVATION_ELU", "InputTensor": FLAT, "OutputTensor": FLAT}
AFFINE: dict[str, Any] = {"Type": "ELEMENT_WISE_ABS", "InputTensor": FLAT, "OutputTensor": FLAT}
BAD_CLIP = CLIP | {"MinMaxDataType": "INT32", "Min": 1.5, "Max": 2**31}
NO_FLOAT = "a FLOAT (a number from -3.4028235e38 to 3.4028235e38, "


def fill(data_type: str, value: Any) -> dict[str, Any]:
    return FILL | {"ValueDataType": data_type, "Value": value}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (fill("UINT8", -5), "Value is -5; a UINT8 (an integer from 0 to 255) was expected"),
        (fill("UINT8", 300), "Value is 300; a UINT8 (an integer from 0 to 255) was"),
        (fill("INT4", -9), "Value is -9; an INT4 (an integer from -8 to 7) was expected"),
        (fill("FLOAT16", 1e9), "Value is 1000000000.0; a FLOAT16 (a number from -65504 to"),
        (fill("INT64", 10**23), "Value is 1e+23; an INT64 (an integer from -922337203685"),
        (fill("UINT64", "NaN"), "Value is nan; a UINT64 (an integer from 0 to 18446744"),
        (fill("FLOAT64", "1"), "Value is '1'; a number, \"Infinity\", "),
        (fill("FLOAT64", True), 'Value is true; a number, "Infinity", '),
        (fill("FLOAT64", 10**400), "Value is 1000000"),
        (BAD_CLIP, "Min is 1.5; an INT32 (an integer from -2147483"),
        (BAD_CLIP, "; Max is 2147483648; an INT32 (an integer from"),
        (ELU | {"Alpha": 1e90}, f"Alpha is 1e+90; {NO_FLOAT}"),
        (ELU | {"Alpha": "1"}, f"Alpha is '1'; {NO_FLOAT}"),
        (ELU | {"Alpha": True}, f"Alpha is true; {NO_FLOAT}"),
        (ELU | {"Alpha": None}, f"Alpha is null; {NO_FLOAT}"),
        (AFFINE | {"ScaleBias": {"Scale": 1, "Bias": 1e39}}, f"ScaleBias.Bias is 1e+39; {NO_FLOAT}"),
    ],
)
def test_a_number_that_its_c_field_does_not_hold_is_a_problem(value: Any, message: str) -> None:
    (problem,) = parts(value)
    assert isinstance(problem, Finding)
    assert message in problem.message


@pytest.mark.parametrize("number", [1, -2.5, 3.4028235e38, 1e-60, "Infinity", "-Infinity", "NaN", 10**30])
def test_integers_and_words_are_floats(number: Any) -> None:
    for value in (ELU | {"Alpha": number}, fill("FLOAT32", number)):
        (part,) = parts(value)
        assert isinstance(part, Item)


def test_an_integer_may_be_written_with_a_point() -> None:
    (part,) = parts(fill("INT64", 7.0))
    assert '"Value":7}' in part.all_fields


GRAPH: dict[str, Any] = {"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": TILE}]}
EDGE = {"GraphInputIndex": 0, "ToNodeIndex": 0}


def unknown(path: str, keys: str) -> str:
    return f"{path} is unknown (the keys are {keys}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (AFFINE | {"ScaleBias": {"Scale": 1, "Bais": 2}}, "ScaleBias.Bais is unknown (did you mean Bias?)"),
        (AFFINE | {"ScaleBias": {"Scale": 1, "Bias": 2, "X": 3}}, unknown("ScaleBias.X", "Scale, Bias)")),
        (AFFINE | {"InputTensor": {"Desc": FLAT | {"Foo": 1}}},
         unknown("InputTensor.Foo", "DataType, Flags, DimensionCount, Sizes, Strides, Total")),
        (AFFINE | {"Foo": 1}, unknown("Foo", "InputTensor, OutputTensor, ScaleBias)")),
        (GRAPH | {"Foo": 1}, unknown("Foo", "InputCount, OutputCount, NodeCount, Nodes, InputEdgeCount, ")),
        (GRAPH | {"InputEdges": [{"GraphInputIndx": 0, "ToNodeIndex": 0}]},
         "InputEdges[0].GraphInputIndx is unknown (did you mean GraphInputIndex?)"),
        (GRAPH | {"InputEdges": [EDGE | {"Foo": 1}]},
         unknown("InputEdges[0].Foo", "Name, Type, GraphInputIndex, ToNodeIndex, ToNodeInputIndex)")),
        (GRAPH | {"Nodes": [{"Operator": TILE, "Foo": 1}]},
         unknown("Nodes[0].Foo", "Name, Type, Operator, Data, DataSize, NullData)")),
        (GRAPH | {"Nodes": [{"Operator": AFFINE | {"ScaleBias": {"Scale": 1, "Bias": 2, "X": 3}}}]},
         unknown("Nodes[0].Operator.ScaleBias.X", "Scale, Bias)")),
        (GRAPH | {"Nodes": [{"Type": "GATHER", "Desc": TILE}]},
         "Nodes[0] is an object; an operator's descriptor belongs under the key Operator"),
    ],
)  # fmt: skip
def test_of_an_unknown_key_the_keys_of_its_own_struct_are_named(value: Any, message: str) -> None:
    (problem,) = parts(value)
    assert isinstance(problem, Finding)
    assert problem.message.startswith(message)


NO_TYPES: dict[str, tuple[Any, str]] = {
    "null": (None, "null; input should be a name or an integer"),
    "an array": (["GATHER"], "an array of 1; input should be a name or an integer"),
    "true": (True, "true; input should be a name or an integer"),
    "no integer": (67.0, r"67\.0; input should be a name or an integer"),
    "another case": ("Tile", r"'Tile'; .*\(did you mean TILE\?\)"),
    "another operator's beginning": ("RELU", r"'RELU'; .*\(did you mean ACTIVATION_RELU\?\)"),
}


@pytest.mark.parametrize(("kind", "message"), NO_TYPES.values(), ids=NO_TYPES)
@pytest.mark.parametrize("desc", [{}, TILE, None])
def test_of_an_operator_with_a_wrong_type_the_type_alone_is_reported(kind: Any, message: str, desc: Any) -> None:
    operator = {"Type": kind, "Desc": desc}
    add = {"Type": "ELEMENT_WISE_ADD1", "ATensor": FLAT, "BTensor": FLAT, "OutputTensor": FLAT}
    graph = {"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": operator}]}
    for value, path in (
        (operator, ""),
        (add | {"FusedActivation": operator}, r"FusedActivation\."),
        (graph, r"Nodes\[0\]\.Operator\."),
    ):
        (problem,) = parts(value)
        assert isinstance(problem, Finding)
        assert re.fullmatch(f"{path}Type is {message}[^;]*(; see docs/operators.md for all names)?", problem.message)


@pytest.mark.parametrize("item", [b'{"a": 1, "a": 2}', b"{", b'{"a": NaN}'])
def test_a_broken_list_is_not_taken_for_lines(item: bytes) -> None:
    (problem,) = parts(b"\n[\n" + item + b",\n" + LINE.encode() + b"\n]")
    assert (type(problem), problem.path) == (Finding, "")


def test_a_file_that_cannot_be_opened_is_a_problem(tmp_path: Path) -> None:
    assert list(read_source(str(tmp_path / "missing.json"))) == [unreadable("", "No such file or directory")]
    assert list(read_source(str(tmp_path))) == [unreadable("", "Is a directory")]
    with pytest.raises(InputError, match="No such file or directory"):
        parse_source(str(tmp_path / "missing.json"))


def test_a_document_is_limited_and_lines_are_not_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", len(LINE) + 1)
    path = tmp_path / "tiles.json"
    path.write_text(f"{LINE}\n\nnonsense\n{LINE}\n")
    (problem,) = read_source(str(path))
    assert isinstance(problem, Finding)
    assert f"larger than {len(LINE) + 1} bytes" in problem.message
    with pytest.raises(InputError, match="larger than"):
        parse_source(str(path))
    first, nonsense, last = read_source(str(path.rename(tmp_path / "tiles.jsonl")))
    assert (first, last) == (Item("/0", BARE), Item("/3", BARE))
    assert isinstance(nonsense, Finding)
    assert nonsense.path == "/2"


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson"])
@pytest.mark.parametrize("long", [LINE.ljust(201), LINE.ljust(950), LINE.ljust(200) + LINE], ids=len)
def test_a_line_over_the_limit_is_one_problem_and_the_next_keeps_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, long: str
) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 200)
    monkeypatch.setattr(documents, "_SKIPPED_AT_ONCE", 7)
    path = tmp_path / f"a{suffix}"
    path.write_text(f"{LINE}\n{long}\n{LINE}\n{long}")
    assert list(read_source(str(path))) == [
        Item("/0", BARE),
        unreadable("/1", "line 2 is larger than 200 bytes"),
        Item("/2", BARE),
        unreadable("/3", "line 4 is larger than 200 bytes"),
    ]


@pytest.mark.parametrize("form", ["list", "lines"])
def test_so_many_problems_of_a_source_are_reported_the_others_counted_and_tiles_behind_them_read(form: str) -> None:
    items = [b"[[]]"] * 250 + [LINE.encode()]
    *problems, tile, more = read_document(b"[%s]" % b",".join(items)) if form == "list" else read_lines(items)
    assert len(problems) == 100
    assert isinstance(tile, Item)
    assert (tile.pointer, more) == ("/250", unreadable("", "and 150 more problems"))


# Positions


LAID_OUT = """{
  "InputTensor": {"DataType": "FLOAT32", "Sizes": [2, 3]},
  "OutputTensor": {
    "Type": "BUFFER",
    "Desc": {"DataType": "FLOAT32",
             "Sizes": [4,
                       3]}
  },
  "Repeats": [2, 1]
}
"""


def location_of(found: Position | None) -> tuple[int, int] | None:
    return None if found is None else (found.line, found.column)


def begins(text: str, pointer: str, path: str = "") -> tuple[int, int] | None:
    return location_of(SourceText(text.encode()).position(pointer, path))


def line_begins(text: str, pointer: str, path: str, name: str) -> tuple[int, int] | None:
    """The position of a field in JSON lines, or of a line that is no descriptor."""
    Path(name).write_bytes(text.encode())
    for part in read_source(name):
        if isinstance(part, Finding) and part.path == pointer:
            return location_of(part.position)
        if isinstance(part, Item) and part.pointer == pointer and part.places:
            return location_of(part.position(path))
    raise LookupError(pointer)


@pytest.mark.parametrize(
    ("text", "pointer", "path", "place"),
    [
        *((LAID_OUT, "", path, place) for path, place in (
            ("", (1, 1)),
            ("InputTensor", (2, 18)),
            ("InputTensor.Sizes", (2, 51)),
            ("InputTensor.Sizes[1]", (2, 55)),
            ("OutputTensor.Sizes[1]", (7, 24)),  # within Desc, which messages leave out
            ("OutputTensor.Desc", (5, 13)),
            ("OutputTensor.Type", (4, 13)),
            ("Repeats[0]", (9, 15)),
            # of a missing field, the object that lacks it
            ("RepeatsCount", (1, 1)),
            ("InputTensor.Type", (2, 18)),
            ("InputTensor.Strides[1]", (2, 18)),
            ("OutputTensor.Strides", (5, 13)),
            ("Repeats[2]", (9, 14)),
        )),
        ('[{},\n {"Repeats": 1}]', "/1", "Repeats", (2, 14)),
        ('{"dispatchables": {"a/b~": {\n"desc": {"Repeats": 1}}}}', "/dispatchables/a~1b~0", "Repeats", (2, 21)),
        ('{"dispatchables": {"t": {"type": "TILE",\n"Repeats": [7]}}}', "/dispatchables/t", "Repeats[0]", (2, 13)),
        ('{"Type": "TILE", "Desc":\n null}', "", "Desc", (2, 2)),
        ('{"input_tensor": {"data_type":\n 9}}', "", "InputTensor.DataType", (2, 2)),
        ('// "Repeats": [1]\n{/*}*/ "Repeats": /* [ */ [1, 2,],}', "", "Repeats[1]", (2, 31)),
        ('{"a": "}]{[,:\\\\\\"", "Repeats": 1}', "", "Repeats", (1, 32)),
        ('{"Re\\u0070eats":\n 1}', "", "Repeats", (2, 2)),
        ('\ufeff{"Repeats": 1}', "", "Repeats", (1, 13)),
        ('{"a": 0,\r\n"Repeats": 1}', "", "Repeats", (2, 12)),
        ('{"Repeats": 1}\n/* [', "", "Repeats", (1, 13)),
    ],
)  # fmt: skip
def test_a_field_is_where_its_value_begins(text: str, pointer: str, path: str, place: tuple[int, int]) -> None:
    assert begins(text, pointer, path) == place


SHORT = '{"InputTensor": null, "OutputTensor": null, "Repeats": [1]}'


LINES = f"{SHORT}\n\nnonsense [\n  {SHORT}\n"
BLANKS = f"\n \n{SHORT}\n{SHORT}\n"


@pytest.mark.parametrize(
    ("text", "pointer", "path", "name", "place"),
    [
        *(row for name in ("a.jsonl", "a.json") for row in (
            (LINES, "/0", "Repeats", name, (1, 56)),
            (LINES, "/2", "", name, (3, 2)),
            (LINES, "/3", "Repeats", name, (4, 58)),
            (LINES, "/3", "RepeatsCount", name, (4, 3)),
        )),
        # blank lines before the first do not count for the pointers of a file named .json
        (BLANKS, "/1", "Repeats", "a.json", (4, 56)),
        (BLANKS, "/3", "Repeats", "a.jsonl", (4, 56)),
        # lines that repeat a name together
        (f'{{"a": 0, "a":\n{SHORT}\n}}', "/1", "Repeats", "a.json", (2, 56)),
    ],
)  # fmt: skip
def test_a_json_line_has_the_number_that_it_has_in_its_file(
    text: str, pointer: str, path: str, name: str, place: tuple[int, int]
) -> None:
    assert line_begins(text, pointer, path, name) == place


@pytest.mark.parametrize("beginning", ["[" * 10**5, '"' + '\\"' * 10**5, "/* " * 10**5])
def test_a_hostile_line_costs_no_more_than_its_length(beginning: str) -> None:
    text = f"{SHORT}\n{beginning}\n"
    line, _ = line_begins(text, "/1", "", "a.jsonl") or (0, 0)
    assert line == 2
    assert line_begins(text, "/0", "Repeats", "a.jsonl") == (1, 56)


def test_an_unreadable_line_after_blank_ones_is_reported_by_the_number_that_its_position_has() -> None:
    Path("a.json").write_text(f"\n\n{SHORT}\n{{]\n")
    (problem,) = (part for part in read_source("a.json") if isinstance(part, Finding))
    assert "at line 4 column 2" in problem.message
    assert problem.position is not None
    assert problem.position.line == 4


@pytest.mark.parametrize(
    ("text", "pointer"),
    [(LAID_OUT, "/dispatchables/t"), (LAID_OUT, "/0"), ("[1]", "/1"), ("[1]", "/x"), ("", ""), ("{", "/a")],
)
def test_a_pointer_that_leads_nowhere_has_no_position(text: str, pointer: str) -> None:
    assert begins(text, pointer) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text(CHARACTERS, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_value_of_a_document_is_found_by_its_steps(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = SourceText(text.encode())
    lines = text.split("\n")

    def check(value: Any, steps: list[str]) -> None:
        place = document.position(json_pointer(steps))
        assert place is not None
        region = lines[place.line - 1 : place.end_line]
        region[-1] = region[-1][: place.end_column - 1]
        region[0] = region[0][place.column - 1 :]
        assert json.loads("\n".join(region)) == value
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            check(child, [*steps, str(key)])

    check(value, [])


# Comments and trailing commas


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2]}', {"a": [1, 2]}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ("// first\n[1, // one\n 2]", [1, 2]),
        ("[1, /* two\n lines */ 2]", [1, 2]),
        ("[1 /* , */ , /**/ ]", [1]),
        ('["// no comment", "/* nor */", "a,]", "\\",]"]', ["// no comment", "/* nor */", "a,]", '",]']),
        ("\ufeff[1]", [1]),
        ('["ü", 1.5e3, null, true,]', ["ü", 1500.0, None, True]),
    ],
)
def test_comments_and_trailing_commas_are_allowed(text: str, value: object) -> None:
    assert parse_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "EOF"),
        (b'{"a": 1', "EOF while parsing an object at line 1 column 7"),
        (b"[1,,2]", "expected value at line 1 column 4"),
        (b"[,]", "expected value"),
        (b"{,}", "line 1"),
        (b"[1] x", "trailing characters at line 1 column 5"),
        (b"/* never closed [1]", "EOF"),
        (b'"never closed', "EOF"),
        (b"[NaN]", "expected value"),
        (b"[Infinity]", "expected value"),
        (b"['a']", "expected value"),
        (b"\xff\xfe[\x001\x00]\x00", "the text is UTF-16; UTF-8 was expected"),
        (b'["\xff"]', "invalid unicode"),
        (b'{"a": 1, "b": 2, "a": 3}', "the name 'a' appears twice in one object"),
        (b'[{"b": [{"x": 1, /* again */ "x": 1,}]}]', "the name 'x' appears twice"),
        (b"// a\n/* b\nb */ [1,\n2 3]", "line 4 column 3"),
    ],
)
def test_what_is_no_json_is_an_error_with_its_place(text: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_comments_change_nothing(values: list[object]) -> None:
    commented = b"/* , */".join([b"[", *(json.dumps(value).encode() + b"//\n," for value in values), b"]"])
    assert parse_json(commented) == values


def test_a_text_goes_with_its_last_name_also_after_it_was_asked_for_positions() -> None:
    text = SourceText(b'{"a": [1, {"b": 2}]}')
    assert text.position("/a/1", "b") == Position(1, 17, 1, 18)
    there = weakref.ref(text)
    gc.disable()
    try:
        del text
        assert there() is None, "a cycle keeps it until garbage is collected"
    finally:
        gc.enable()
