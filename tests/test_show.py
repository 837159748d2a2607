"""``dml-tile show`` on the command line, and ``show`` in Python; pictures have tests of their own."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import onnx
import pytest

import dml_tile
from dml_tile.cli.tiles import MAX_TILES
from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from tests.helpers.check_files import write
from tests.helpers.command_line import Call
from tests.helpers.descriptors import GOOD, page_tile
from tests.helpers.drawn_tiles import SHARED
from tests.helpers.dxdispatch_models import tile_json
from tests.helpers.onnx_graphs import constant, model, tile_node, typed
from tests.helpers.paths import EXAMPLES

MODEL: Final = str(EXAMPLES / "models" / "two_tiles.onnx")


def test_findings_stand_below_and_exit_1(show: Call) -> None:
    result = show(write("shared.json", SHARED))
    assert result.exit_code == 1
    drawn, _, findings = result.stdout.partition("  error[")
    assert "0B=3A! 1B=4A! 2B=5A!" in drawn
    assert "!: an error: elements of the output share these bytes" in drawn
    assert findings.startswith("DML-BUFFER-Strides-overlap] E_INVALIDARG")


def test_findings_are_those_of_the_target(show: Call) -> None:
    long = write("long.json", tile_json([1, 1, 2, 3], [1, 1, 1, 2], "INT64"))
    assert show(long).exit_code == 0
    result = show(long, "--target", "windows-11-21h2")
    assert result.exit_code == 1
    assert "error[DML-TILE-DataType-level]" in result.stdout
    assert "0B  1B  2B" in result.stdout


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (tile_json([2], [2]) | {"OutputTensor": None}, "OutputTensor cannot be drawn: it is null"),
        ({"Type": "DML_OPERATOR_GEMM"}, "the tile cannot be drawn: it is no tile"),
        (None, "the tile cannot be drawn: it is no tile"),
    ],
)
def test_a_tile_that_cannot_be_drawn_has_a_reason_and_exits_1(show: Call, value: Any, why: str) -> None:
    result = show(write("tile.json", value))
    assert result.exit_code == 1
    assert f"  {why}\n" in result.stdout


def test_all_tiles_of_a_file_are_drawn_up_to_a_number(show: Call) -> None:
    few = show(write("few.json", [tile_json([2], [2])] * 2))
    assert few.stdout.count("InputTensor: ") == 2
    many = show(write("many.json", [*([tile_json([2], [2])] * (MAX_TILES + 1)), SHARED]))
    assert many.stdout.count("InputTensor: ") == MAX_TILES
    assert many.stdout.endswith(
        f"2 more tiles are not drawn; choose one with --pointer: /{MAX_TILES}, /{MAX_TILES + 1}\n"
    )
    assert many.exit_code == 1


def test_a_pointer_chooses_the_tile_also_of_standard_input(show: Call) -> None:
    two = json.dumps([tile_json([2], [2]), SHARED])
    result = show("-", "--pointer", "/0", stdin=two)
    assert result.exit_code == 0
    assert result.stdout.startswith("-#/0: accepted")
    assert "0A  1A  0B  1B" in result.stdout
    missing = show("-", "--pointer", "/7", stdin=two)
    assert missing.exit_code == 2
    assert "there is no such tile; there are /0, /1" in missing.stderr


def test_a_node_is_drawn_as_the_descriptor_that_does_the_same_if_all_of_it_is_known(show: Call) -> None:
    result = show(MODEL, "--dim", "batch=4", "--pointer", "number")
    assert result.exit_code == 0
    assert f"{MODEL}#number: accepted" in result.stdout
    assert "OutputTensor: INT64, 64 elements of 8 bytes" in result.stdout
    result = show(MODEL, "--pointer", "number")
    assert result.exit_code == 1
    assert (
        "the tile cannot be drawn: not all of it is known before the model runs; try --dim batch=SIZE\n"
        in result.stdout
    )
    assert "known at run time only: Repeats" in result.stdout


def test_a_file_without_tiles_is_said_to_have_none(show: Call) -> None:
    Path("none.json").write_text("[]")
    result = show("none.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "dml-tile: none.json: there is no tile to draw\n"
    assert "no tile to draw" not in show(MODEL, "--dim", "batch=4").stderr


@pytest.mark.parametrize(
    ("shape", "data_type", "why"),
    [
        ([2, 3, 4], onnx.TensorProto.FLOAT, "its own specification rules it out"),
        ([2, 0], onnx.TensorProto.FLOAT, "no descriptor does the same"),
        ([2, 3], onnx.TensorProto.COMPLEX64, "no descriptor does the same"),
    ],
)
def test_a_node_without_a_descriptor_cannot_be_drawn(show: Call, shape: list[int], data_type: int, why: str) -> None:
    nodes = constant("r", (1, 2)), tile_node(name="wrong")
    onnx.save(model(*nodes, inputs=[typed("x", shape, data_type)]), "wrong.onnx")
    result = show("wrong.onnx")
    assert result.exit_code == 1
    assert f"the tile cannot be drawn: {why}\n" in result.stdout


# In Python and in notebooks


INT64 = TileOperatorDesc.from_input(data_type="INT64", sizes=[2, 3], repeats=[1, 2])


def test_a_notebook_draws_a_tile() -> None:
    picture = dml_tile.show(GOOD)
    assert isinstance(picture, dml_tile.Picture)
    assert ElementTree.fromstring(picture.svg).tag.endswith("svg")
    assert picture.svg in picture._repr_html_()
    assert picture.html.startswith("<!DOCTYPE html>")


def test_a_picture_is_what_the_command_line_draws(show: Call) -> None:
    show("-", "--output", "image.svg", stdin=GOOD.model_dump_json(by_alias=True))
    drawn = Path("image.svg").read_text(encoding="utf-8")
    assert dml_tile.show(GOOD).svg.replace("descriptor: accepted", "-: accepted") == drawn


def test_a_picture_has_the_findings_at_its_target() -> None:
    assert "DML-TILE-DataType-level" not in dml_tile.show(INT64).svg
    with dml_tile.simulate("windows-11-21h2"):
        assert "DML-TILE-DataType-level" in dml_tile.show(INT64).html
    with pytest.raises(ValueError, match="windows-12"):
        dml_tile.show(INT64, "windows-12")


@pytest.mark.parametrize("desc", [None, OperatorDesc(type=67, desc=None), page_tile(InputTensor=None)])
def test_a_picture_has_the_reason_why_a_tile_cannot_be_drawn(desc: OperatorDesc | TileOperatorDesc | None) -> None:
    assert "cannot be drawn" in dml_tile.show(desc).svg


@pytest.mark.parametrize("source", [1, "tile", True, dml_tile.DML_OPERATOR_DESC(), ctypes.c_void_p(1)])
def test_functions_of_descriptors_take_no_address(source: Any) -> None:
    names = "show", "check", "require", "lowest_level", "lower", "execute", "cpp_text", "compile_tile"
    others: dict[str, list[Any]] = {"lower": ["6_4"], "execute": [b"", bytearray()]}
    for name in names:
        with pytest.raises(TypeError):
            getattr(dml_tile, name)(source, *others.get(name, []))


def test_a_struct_is_drawn_lowered_and_written_as_code() -> None:
    read = dml_tile.read_operator_desc(dml_tile.write_operator_desc(INT64))
    assert read is not None
    assert dml_tile.show(read) == dml_tile.show(OperatorDesc(type=70, desc=INT64))
    assert dml_tile.lower(read, "windows-10-2004").steps
    assert dml_tile.cpp_text(read, "tile").splitlines()[-1].startswith("const DML_OPERATOR_DESC tile_operator = ")
