"""Finding descriptors in files of each form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.errors import InputError, Problem
from dml_tile.readers import descriptors as documents
from dml_tile.readers.descriptors import JsonDescriptor, parse_source, read_document, read_lines, read_source
from tests.helpers.check_files import FLAT, TILE

BARE = TileOperatorDesc.model_validate(TILE)
OPERATOR = OperatorDesc(type=70, desc=BARE)


MODEL: dict[str, Any] = {"resources": {}, "dispatchables": {}, "commands": []}
LINE = json.dumps(TILE)


def parts(value: Any) -> list[documents.DescriptorOrProblem]:
    return list(read_document(value if isinstance(value, bytes) else json.dumps(value).encode()))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TILE, [JsonDescriptor("", BARE)]),
        ({"input_tensor": FLAT, "output_tensor": FLAT, "repeats": [1]}, [JsonDescriptor("", BARE)]),
        ({"Type": "DML_OPERATOR_TILE", "Desc": TILE}, [JsonDescriptor("", OPERATOR)]),
        ({"type": "TILE", "desc": TILE}, [JsonDescriptor("", OPERATOR)]),
        ({"Type": 70} | TILE, [JsonDescriptor("", OPERATOR)]),
        ({"Type": "TILE", "Desc": None}, [JsonDescriptor("", OperatorDesc(type=70, desc=None))]),
        ({"Type": 99, "Desc": {"Foo": 1}}, [JsonDescriptor("", OperatorDesc(type=99, desc=None))]),
        ({"Type": "DML_OPERATOR_GEMM", "Desc": {}}, [JsonDescriptor("", other="DML_OPERATOR_GEMM")]),
        ({"Type": "GEMM"}, [JsonDescriptor("", other="DML_OPERATOR_GEMM")]),
        (None, [JsonDescriptor("")]),
        (
            [TILE, None, {"Type": 70} | TILE],
            [JsonDescriptor("/0", BARE), JsonDescriptor("/1"), JsonDescriptor("/2", OPERATOR)],
        ),
        ([], []),
    ],
)
def test_descriptors_are_found_with_their_pointers(value: Any, expected: list[documents.DescriptorOrProblem]) -> None:
    assert parts(value) == expected


def test_what_can_be_read_of_a_broken_model_is() -> None:
    dispatchables = {"good": {"type": "TILE", "desc": TILE | {"RepeatsCount": 1}}, "bad": {"type": "TILE", "desc": 3}}
    assert parts({"resources": {}, "dispatchables": dispatchables}) == [
        Problem("/dispatchables/bad/desc", "desc is 3; an object was expected"),
        Problem("", "commands is missing"),
        JsonDescriptor("/dispatchables/good", OPERATOR),
    ]
    assert parts({"dispatchables": 7})[0] == Problem("", "resources is missing")


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
    found = parts(text.format(line=LINE, other='{"Type": "GEMM"}').encode())
    assert JsonDescriptor("/1" if expected[0] != "/0" else "/0", BARE) in found
    for part, beginning in zip(found, expected, strict=True):
        assert (str(part) if isinstance(part, Problem) else part.pointer).startswith(beginning)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "unreadable JSON: EOF"),
        (b'{"InputTensor": {', "unreadable JSON: EOF while parsing"),
        (b"{\n{", "unreadable JSON"),
        *((blanks, "unreadable JSON") for blanks in (b"\n\n", b" \n\t\r\n", b"\x0b\n", b"\xef\xbb\xbf\n")),
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
        (TILE | {f"k{i}": 1 for i in range(1000)}, "k9 is unknown; and 990 more problems$"),
        (TILE | {"InputTensor": FLAT | {f"k{i}": 1 for i in range(1000)}}, "k9 is unknown; and 990 more problems$"),
        ({"Type": -1}, "Type is -1"),
        ({"Type": [1], "Desc": TILE}, r"Type is an array of 1"),
        ({"Type": True, "Desc": TILE}, "Type is true"),
    ],
)
def test_what_cannot_be_read_is_reported_by_field_value_and_expectation(value: Any, message: str) -> None:
    problems = [part for part in parts(value) if isinstance(part, Problem)]
    assert len(problems) == 1
    with pytest.raises(InputError, match=message):
        raise InputError(problems)


@pytest.mark.parametrize("item", [b'{"a": 1, "a": 2}', b"{", b'{"a": NaN}'])
def test_a_broken_list_is_not_taken_for_lines(item: bytes) -> None:
    (problem,) = parts(b"\n[\n" + item + b",\n" + LINE.encode() + b"\n]")
    assert isinstance(problem, Problem)
    assert problem.pointer == ""


def test_a_file_that_cannot_be_opened_is_a_problem(tmp_path: Path) -> None:
    assert list(read_source(str(tmp_path / "missing.json"))) == [Problem("", "No such file or directory")]
    assert list(read_source(str(tmp_path))) == [Problem("", "Is a directory")]
    with pytest.raises(InputError, match="No such file or directory"):
        parse_source(str(tmp_path / "missing.json"))


def test_a_document_is_limited_and_lines_are_not_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", len(LINE) + 1)
    path = tmp_path / "tiles.json"
    path.write_text(f"{LINE}\n\nnonsense\n{LINE}\n")
    (problem,) = read_source(str(path))
    assert isinstance(problem, Problem)
    assert f"larger than {len(LINE) + 1} bytes" in problem.message
    with pytest.raises(InputError, match="larger than"):
        parse_source(str(path))
    first, nonsense, last = read_source(str(path.rename(tmp_path / "tiles.jsonl")))
    assert (first, last) == (JsonDescriptor("/0", BARE), JsonDescriptor("/3", BARE))
    assert (nonsense.pointer, type(nonsense)) == ("/2", Problem)


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
        JsonDescriptor("/0", BARE),
        Problem("/1", "line 2 is larger than 200 bytes"),
        JsonDescriptor("/2", BARE),
        Problem("/3", "line 4 is larger than 200 bytes"),
    ]


@pytest.mark.parametrize("form", ["list", "lines"])
def test_so_many_problems_of_a_source_are_reported_the_others_counted_and_tiles_behind_them_read(form: str) -> None:
    items = [b"[[]]"] * 250 + [LINE.encode()]
    *problems, tile, more = read_document(b"[%s]" % b",".join(items)) if form == "list" else read_lines(items)
    assert len(problems) == 100
    assert isinstance(tile, JsonDescriptor)
    assert (tile.pointer, more) == ("/250", Problem("", "and 150 more problems"))
