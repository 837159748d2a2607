"""`show`: a descriptor's picture in Python and in a notebook."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from dml_tile import (
    DML_OPERATOR_DESC,
    Picture,
    check,
    compile_tile,
    cpp_text,
    execute,
    lower,
    lowest_level,
    read_operator_desc,
    require,
    show,
    simulate,
    write_operator_desc,
)
from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from tests.helpers.command_line import Call
from tests.helpers.descriptors import GOOD, page_tile

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


@pytest.mark.parametrize("desc", [None, OperatorDesc(type=67, desc=None), page_tile(InputTensor=None)])
def test_what_cannot_be_drawn_says_why(desc: OperatorDesc | TileOperatorDesc | None) -> None:
    assert "cannot be drawn" in show(desc).svg


@pytest.mark.parametrize("source", [1, "tile", True, DML_OPERATOR_DESC(), ctypes.c_void_p(1)])
def test_only_what_says_that_it_reads_memory_takes_an_address(source: Any) -> None:
    calls: list[Callable[..., object]] = [show, check, require, lowest_level, lower, execute, cpp_text, compile_tile]
    for call in calls:
        with pytest.raises(TypeError):
            call(source, *(["6_4"] if call is lower else [b"", bytearray()] if call is execute else []))


def test_a_struct_is_drawn_lowered_and_written_as_code() -> None:
    read = read_operator_desc(write_operator_desc(INT64))
    assert read is not None
    assert show(read) == show(OperatorDesc(type=70, desc=INT64))
    assert lower(read, "windows-10-2004").steps
    assert cpp_text(read, "tile").splitlines()[-1].startswith("const DML_OPERATOR_DESC tile_operator = ")
