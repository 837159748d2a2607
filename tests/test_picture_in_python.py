"""`show`: a descriptor's picture in Python and in a notebook."""

from __future__ import annotations

import ctypes
from typing import Any
from xml.etree import ElementTree

import pytest

from dml_tile import Picture, cpp_text, lower, read_operator_desc, show, simulate, write_operator_desc
from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from tests.helpers.command_line import Call
from tests.helpers.descriptors import GOOD, OPERATOR, page_tile

INT64 = TileOperatorDesc.from_input(data_type="INT64", sizes=[2, 3], repeats=[1, 2])


def test_a_notebook_draws_a_tile() -> None:
    picture = show(GOOD)
    assert isinstance(picture, Picture)
    assert ElementTree.fromstring(picture.svg).tag.endswith("svg")
    assert picture.svg in picture._repr_html_()
    assert picture.html.startswith("<!DOCTYPE html>")


def test_a_picture_is_what_the_command_line_draws(show: Call, example: TileOperatorDesc) -> None:
    from dml_tile.pictures.picture import show as show_in_python

    show("-", "--output", "image.svg", stdin=example.model_dump_json(by_alias=True))
    with open("image.svg", encoding="utf-8") as file:  # noqa: PTH123
        drawn = file.read()
    assert show_in_python(example).svg.replace("descriptor: accepted", "-: accepted") == drawn


def test_a_picture_tells_the_findings_at_its_target() -> None:
    assert "DML-TILE-DataType-level" in show(INT64, "windows-11-21h2").svg
    assert "DML-TILE-DataType-level" not in show(INT64).svg
    with simulate("windows-11-21h2"):
        assert "DML-TILE-DataType-level" in show(INT64).html
    with pytest.raises(ValueError, match="windows-12"):
        show(INT64, "windows-12")


@pytest.mark.parametrize("source", ["structure", "address", "pointer"])
def test_a_struct_is_drawn_where_it_lies(source: str) -> None:
    struct = write_operator_desc(OPERATOR)
    given: Any = {"structure": struct, "address": ctypes.addressof(struct), "pointer": ctypes.pointer(struct)}[source]
    assert show(given) == show(OPERATOR)


@pytest.mark.parametrize("desc", [None, OperatorDesc(type=67, desc=None), page_tile(InputTensor=None)])
def test_what_cannot_be_drawn_says_why(desc: OperatorDesc | TileOperatorDesc | None) -> None:
    assert "cannot be drawn" in show(desc).svg


def test_what_is_no_struct_is_refused() -> None:
    with pytest.raises(TypeError, match="a ctypes structure or a pointer to one was expected, not str"):
        show("tile")  # type: ignore[arg-type]


def test_a_struct_is_lowered_and_written_as_code() -> None:
    read = read_operator_desc(write_operator_desc(INT64))
    assert read is not None
    assert lower(read, "windows-10-2004").steps
    assert cpp_text(read, "tile").splitlines()[-1].startswith("const DML_OPERATOR_DESC tile_operator = ")
