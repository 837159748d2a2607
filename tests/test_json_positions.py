"""Findings stand where their fields do: at the line and column of the value, in every kind of JSON that is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.readers.json.locate import JsonText, Position
from dml_tile.readers.json.positions import Positions

TILE = """{
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


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def position(text: str, pointer: str, path: str = "", name: str = "a.json") -> Position | None:
    Path(name).write_bytes(text.encode())
    return Positions().of(name, pointer, path)


def begins(text: str, pointer: str, path: str = "", name: str = "a.json") -> tuple[int, int] | None:
    found = position(text, pointer, path, name)
    return None if found is None else (found.line, found.column)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("", (1, 1)),
        ("InputTensor", (2, 18)),
        ("InputTensor.Sizes", (2, 51)),
        ("InputTensor.Sizes[1]", (2, 55)),
        ("OutputTensor.Sizes[1]", (7, 24)),  # within Desc, which messages leave out
        ("OutputTensor.Desc", (5, 13)),
        ("OutputTensor.Type", (4, 13)),
        ("Repeats[0]", (9, 15)),
    ],
)
def test_a_field_is_where_its_value_begins(path: str, place: tuple[int, int]) -> None:
    assert begins(TILE, "", path) == place


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("RepeatsCount", (1, 1)),
        ("InputTensor.Type", (2, 18)),
        ("InputTensor.Strides[1]", (2, 18)),
        ("OutputTensor.Strides", (5, 13)),
        ("Repeats[2]", (9, 14)),
    ],
)
def test_a_field_that_is_not_there_is_where_the_object_is_that_lacks_it(path: str, place: tuple[int, int]) -> None:
    assert begins(TILE, "", path) == place


def test_a_value_ends_behind_its_last_character() -> None:
    assert position(TILE, "", "InputTensor.DataType") == Position(2, 31, 2, 40)
    assert position(TILE, "", "OutputTensor.Sizes") == Position(6, 23, 7, 26)
    assert position(TILE, "") == Position(1, 1, 10, 2)


@pytest.mark.parametrize(
    ("text", "pointer", "path", "place"),
    [
        ('[{},\n {"Repeats": 1}]', "/1", "Repeats", (2, 14)),
        ('{"dispatchables": {"a/b~": {\n"desc": {"Repeats": 1}}}}', "/dispatchables/a~1b~0", "Repeats", (2, 21)),
        ('{"dispatchables": {"t": {"type": "TILE",\n"Repeats": [7]}}}', "/dispatchables/t", "Repeats[0]", (2, 13)),
        ('{"Type": "TILE", "Desc":\n null}', "", "Desc", (2, 2)),
        ('{"input_tensor": {"data_type":\n 9}}', "", "InputTensor.DataType", (2, 2)),
        ('// "Repeats": [1]\n{/*}*/ "Repeats": /* [ */ [1, 2,],}', "", "Repeats[1]", (2, 31)),
        ('{"a": "}]{[,:\\\\\\"", "Repeats": 1}', "", "Repeats", (1, 32)),
        ('{"Re\\u0070eats":\n 1}', "", "Repeats", (2, 2)),
        ('\ufeff{"Repeats": 1}', "", "Repeats", (1, 13)),
        ('{"é😀": 0, "Repeats": 1}', "", "Repeats", (1, 22)),
        ('{"a": 0,\r\n"Repeats": 1}', "", "Repeats", (2, 12)),
    ],
)  # fmt: skip
def test_it_is_found_in_every_spelling(text: str, pointer: str, path: str, place: tuple[int, int]) -> None:
    assert begins(text, pointer, path) == place


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_of_json_lines_the_number_of_the_line_is_the_pointer_s(name: str) -> None:
    text = '{"Repeats": 1}\n\nnonsense [\n  {"Repeats": 22}\n'
    assert begins(text, "/0", "Repeats", name) == (1, 13)
    assert begins(text, "/3", "Repeats", name) == (4, 15)
    assert begins(text, "/3", "RepeatsCount", name) == (4, 3)


@pytest.mark.parametrize("beginning", ["[" * 10**6, '"' + '\\"' * 10**6, "/* " * 10**6])
def test_a_hostile_line_costs_no_more_than_its_length(beginning: str) -> None:
    text = f'{{"Repeats": 1}}\n{beginning}\n'
    Path("a.json").write_text(text)
    positions = Positions()
    for pointer in ("/0", "/1"):
        positions.of("a.json", pointer, "Repeats")
    assert begins(text, "/0", "Repeats", "a.jsonl") == (1, 13)


def test_a_comment_that_never_ends_is_one() -> None:
    assert begins('{"Repeats": 1}\n/* [', "", "Repeats") == (1, 13)


def test_what_is_read_as_lines_for_a_repeated_name_has_places_in_lines() -> None:
    assert begins('{"a": 0, "a":\n{"Repeats": 1}\n}', "/1", "Repeats") == (2, 13)


def test_blank_lines_before_the_first_do_not_count_in_a_file_named_json() -> None:
    text = '\n \n{"Repeats": 1}\n{"Repeats": 1}\n'
    assert begins(text, "/1", "Repeats") == (4, 13)
    assert begins(text, "/3", "Repeats", "a.jsonl") == (4, 13)


def test_lines_are_found_in_any_order() -> None:
    Path("a.jsonl").write_text("".join(f'{{"Repeats": {i}}}\n' for i in range(5)))
    positions = Positions()
    for number in (2, 2, 4, 0, 3):
        found = positions.of("a.jsonl", f"/{number}", "Repeats")
        assert found == Position(number + 1, 13, number + 1, 14)


def test_one_source_after_the_other_is_asked_for() -> None:
    Path("a.json").write_text('{"Repeats": 1}')
    Path("b.json").write_text('\n{"Repeats": 1}')
    positions = Positions()
    found = [positions.of(name, "", "Repeats") for name in ("a.json", "b.json", "a.json")]
    assert [one and one.line for one in found] == [1, 2, 1]


@pytest.mark.parametrize(
    ("text", "pointer", "name"),
    [
        (TILE, "/dispatchables/t", "a.json"),
        (TILE, "/0", "a.json"),
        ("[1]", "/1", "a.json"),
        ("[1]", "/x", "a.json"),
        ("", "", "a.json"),
        ("{", "", "a.json"),
        ("{}\n", "/7", "a.jsonl"),
        ("{}\n", "/x", "a.jsonl"),
        ("{}\n", "", "a.jsonl"),
        ("{}", "", "a.onnx"),
    ],
)
def test_what_is_not_there_has_no_place(text: str, pointer: str, name: str) -> None:
    assert position(text, pointer, name=name) is None


def test_what_cannot_be_read_twice_has_no_place() -> None:
    os.mkfifo("pipe.json")
    positions = Positions()
    assert [positions.of(name, "", "Repeats") for name in ("-", "missing.json", "pipe.json", ".")] == [None] * 4


def test_a_file_that_is_gone_has_no_place() -> None:
    Path("a.jsonl").write_text("{}\n{}\n")
    positions = Positions()
    assert positions.of("a.jsonl", "/0") is not None
    Path("a.jsonl").unlink()
    assert positions.of("a.jsonl", "/1") is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_value_of_a_document_is_found_by_its_steps(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = JsonText(text)
    lines = text.split("\n")

    def check(value: Any, steps: list[str]) -> None:
        offset = document.follow(steps)
        assert offset is not None
        place = document.position(offset)
        region = lines[place.line - 1 : place.end_line]
        region[-1] = region[-1][: place.end_column - 1]
        region[0] = region[0][place.column - 1 :]
        assert json.loads("\n".join(region)) == value
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            check(child, [*steps, str(key)])

    check(value, [])
