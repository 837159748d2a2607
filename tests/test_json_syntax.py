"""JSON with comments and trailing commas."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.formats.json_text import parse_json
from tests.helpers.hostile_names import CHARACTERS


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


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" * 10**6,
        b'{"a":' * 10**5,
        b"/*" * 10**5,
        b"//" * 10**5,
        b'"' * 10**5,
        b"," * 10**5,
        b'"' + b'\\"' * 10**5 + b"\\",
    ],
)
def test_bombs_are_refused_quickly(bomb: bytes) -> None:
    with pytest.raises(ValueError, match=r"line 1|EOF"):
        parse_json(bomb)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text(CHARACTERS, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([None, 1]))
def test_plain_json_is_read_as_json_reads_it(value: object, indent: int | None) -> None:
    assert parse_json(json.dumps(value, indent=indent).encode()) == value


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_comments_change_nothing(values: list[object]) -> None:
    commented = b"/* , */".join([b"[", *(json.dumps(value).encode() + b"//\n," for value in values), b"]"])
    assert parse_json(commented) == values
