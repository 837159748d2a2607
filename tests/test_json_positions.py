"""Findings stand where their fields do: at the line and column of the value, in every kind of JSON that is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.errors import Position, Problem
from dml_tile.json_text import SourceText, parse_json
from dml_tile.readers.descriptors import read_source
from dml_tile.text import json_pointer
from tests.helpers.hostile_names import CHARACTERS

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


def position(text: str, pointer: str, path: str = "") -> Position | None:
    return SourceText(text.encode()).position(pointer, path)


def begins(text: str, pointer: str, path: str = "") -> tuple[int, int] | None:
    found = position(text, pointer, path)
    return None if found is None else (found.line, found.column)


def line_begins(text: str, pointer: str, path: str, name: str) -> tuple[int, int] | None:
    """The position of a field in JSON lines, or of a line that is no descriptor."""
    Path(name).write_bytes(text.encode())
    part = next(part for part in read_source(name) if part.pointer == pointer)
    if isinstance(part, Problem):
        found = part.position
    else:
        assert part.text is not None
        found = part.text.position(pointer, path)
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
        # of a missing field, the object that lacks it
        ("RepeatsCount", (1, 1)),
        ("InputTensor.Type", (2, 18)),
        ("InputTensor.Strides[1]", (2, 18)),
        ("OutputTensor.Strides", (5, 13)),
        ("Repeats[2]", (9, 14)),
    ],
)
def test_a_field_is_where_its_value_begins(path: str, place: tuple[int, int]) -> None:
    assert begins(TILE, "", path) == place


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
        ('{"a": 0,\r\n"Repeats": 1}', "", "Repeats", (2, 12)),
        ('{"Repeats": 1}\n/* [', "", "Repeats", (1, 13)),
    ],
)  # fmt: skip
def test_it_is_found_in_every_spelling(text: str, pointer: str, path: str, place: tuple[int, int]) -> None:
    assert begins(text, pointer, path) == place


LINE = '{"InputTensor": null, "OutputTensor": null, "Repeats": [1]}'


LINES = f"{LINE}\n\nnonsense [\n  {LINE}\n"
BLANKS = f"\n \n{LINE}\n{LINE}\n"


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
        (f'{{"a": 0, "a":\n{LINE}\n}}', "/1", "Repeats", "a.json", (2, 56)),
    ],
)  # fmt: skip
def test_a_json_line_has_the_number_that_it_has_in_its_file(
    text: str, pointer: str, path: str, name: str, place: tuple[int, int]
) -> None:
    assert line_begins(text, pointer, path, name) == place


@pytest.mark.parametrize("beginning", ["[" * 10**5, '"' + '\\"' * 10**5, "/* " * 10**5])
def test_a_hostile_line_costs_no_more_than_its_length(beginning: str) -> None:
    text = f"{LINE}\n{beginning}\n"
    line, _ = line_begins(text, "/1", "", "a.jsonl") or (0, 0)
    assert line == 2
    assert line_begins(text, "/0", "Repeats", "a.jsonl") == (1, 56)


def test_an_unreadable_line_after_blank_ones_is_reported_by_the_number_that_its_position_has() -> None:
    Path("a.json").write_text(f"\n\n{LINE}\n{{]\n")
    (problem,) = (part for part in read_source("a.json") if isinstance(part, Problem))
    assert "at line 4 column 2" in problem.message
    assert problem.position is not None
    assert problem.position.line == 4


@pytest.mark.parametrize(
    ("text", "pointer"), [(TILE, "/dispatchables/t"), (TILE, "/0"), ("[1]", "/1"), ("[1]", "/x"), ("", ""), ("{", "/a")]
)
def test_a_pointer_that_leads_nowhere_has_no_position(text: str, pointer: str) -> None:
    assert position(text, pointer) is None


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
