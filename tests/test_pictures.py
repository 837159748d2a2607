"""Pictures of a tile's memory: the place of each element, the labels, and what ``show`` makes of them in each form."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import dml_tile
from dml_tile.cli.tiles import MAX_TILES
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX
from dml_tile.pictures.labels import COLOURS, CellLabel, TilePicture, letters, picture_of
from dml_tile.pictures.memory import MAX_CELLS
from dml_tile.pictures.picture import picture_svg
from dml_tile.pictures.table import MemoryTable, copies, legend, picture_lines, table_of
from dml_tile.reports.lines import Line, print_lines
from tests.helpers.check_files import write
from tests.helpers.command_line import Call, errors_of
from tests.helpers.costs import at_most
from tests.helpers.descriptors import GOOD, page_tile
from tests.helpers.dxdispatch_models import model, tile_json
from tests.helpers.onnx_graphs import save, typed
from tests.helpers.paths import EXAMPLES

SHARED: Final = tile_json([2, 3], [1, 2], output={"Strides": [3, 1]})
HUGE: Final = tile_json([1] * 8, [1] * 8, input={"Sizes": [UINT_MAX] * 8}, output={"Sizes": [UINT_MAX] * 8})
TILES: Final = {
    "packed": tile_json([1, 1, 2, 3], [1, 1, 3, 3]),
    "shared": SHARED,
    "large": tile_json([64, 64], [2, 2], "FLOAT16"),
    "broadcast": tile_json([2, 3], [2, 2], input={"Strides": [0, 1]}, output={"Strides": [4096, 8]}),
    "beyond": tile_json([2, 3], [1, 2], output={"TotalTensorSizeInBytes": 40}),
    "copies": tile_json([2, 3], [2, 2]) | {"Repeats": [2, 1]},
    "huge": HUGE,
}


def picture(desc: dict[str, Any]) -> TilePicture:
    return picture_of(TileOperatorDesc.model_validate(desc))


def said(verdict: str) -> list[Line]:
    return [Line(0, verdict)]


def laid_out(sizes: list[int], repeats: list[int], data_type: str = "UINT8", **strides: list[int]) -> TilePicture:
    return picture_of(TileOperatorDesc.from_input(data_type=data_type, sizes=sizes, repeats=repeats, **strides))


def drawn(shown: TilePicture, width: int = 76) -> list[MemoryTable]:
    return [table_of(shown, memory, width, spaces=1) for memory in shown.tensors]


def grid(table: MemoryTable) -> dict[str, str]:
    """Return the rows of a table by their addresses."""
    return {row.address: row.gap or " ".join(label.text for label in row.labels) for row in table.rows}


UNKNOWN_SIZE = "OutputTensor cannot be drawn: nothing is known of the size of its elements"
UNKNOWN_PLACES = "cannot be drawn: its DimensionCount, Sizes and Strides do not say where its elements lie"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"InputTensor": None}, "InputTensor cannot be drawn: it is null"),
        ({"InputTensor__Desc": None}, "InputTensor cannot be drawn: its Desc is null"),
        ({"OutputTensor__DataType": 99}, f"{UNKNOWN_SIZE}, of data type 99"),
        ({"OutputTensor__DataType": "UINT4"}, f"{UNKNOWN_SIZE}, of UINT4"),
        ({"OutputTensor__DimensionCount": 5}, f"OutputTensor {UNKNOWN_PLACES}"),
        ({"InputTensor__Sizes": [1, 0, 2, 3]}, f"InputTensor {UNKNOWN_PLACES}"),
    ],
)
def test_a_tensor_that_cannot_be_drawn_has_a_reason_and_the_other_is_drawn(change: dict[str, Any], why: str) -> None:
    shown = picture_of(page_tile(**change))
    assert shown.undrawn == (why,)
    assert len(shown.tensors) == 1
    assert all(label.colour is None for table in drawn(shown) for label in table.labels)


# Rows


def test_long_rows_are_cut_into_even_pieces_and_many_short_rows_share_one() -> None:
    _, output = drawn(laid_out([2, 3], [1, 3], "INT16"), width=30)
    assert grid(output) == {
        "0": "0A 1A 2A 0B 1B", "10": "2B 0C 1C 2C",
        "18": "3A 4A 5A 3B 4B", "28": "5B 3C 4C 5C",
    }  # fmt: skip
    assert list(grid(drawn(laid_out([40], [1]))[0])) == ["0", "16", "32"]
    source, output = drawn(laid_out([8, 4, 4, 1], [1, 1, 1, 2]))
    assert [len(row.labels) for row in source.rows] == [16] * 8
    assert [len(row.labels) for row in output.rows] == [8] * 32


def test_short_padding_is_drawn_and_long_padding_is_counted_also_behind_the_elements() -> None:
    source, output = drawn(laid_out([2, 3], [1, 1], "INT32", strides=[5, 1], output_strides=[100, 1]))
    assert grid(source) == {"0": "0 1 2 . .", "20": "3 4 5"}
    assert list(grid(output).values())[1:] == ["332 bytes of padding", "3A 4A 5A"]
    assert grid(output)["68"] == "332 bytes of padding"
    shown = picture_of(page_tile(InputTensor__TotalTensorSizeInBytes=40, OutputTensor__TotalTensorSizeInBytes=1000))
    source, output = drawn(shown)
    assert grid(source) == {"0": "0 1 2", "12": "3 4 5", "24": "16 bytes of padding"}
    assert grid(output)["216"] == "784 bytes of padding"


# Marks


def test_elements_beyond_the_total_are_an_error() -> None:
    _, output = drawn(picture_of(page_tile(OutputTensor__TotalTensorSizeInBytes=214)))
    *_, within, beyond = output.labels
    assert (within.text, within.is_wrong) == ("4J", False)
    assert (beyond.text, beyond.is_wrong) == ("5J>", True)


def test_nothing_is_drawn_between_elements_far_beyond_the_total() -> None:
    source = {"InputTensor__Strides": [40, 40, 5, 1], "InputTensor__TotalTensorSizeInBytes": 16}
    output = {"OutputTensor__Strides": [0, 0, 1000, 1], "OutputTensor__TotalTensorSizeInBytes": 4}
    read, written = drawn(picture_of(page_tile(**source, **output)))
    assert grid(read) == {"0": "0 1 2 . ", "20": "3> 4> 5>"}
    assert "3932 bytes beyond the tensor" in grid(written).values()


def test_a_copy_that_repeats_does_not_have_is_an_error_and_without_repeats_has_no_letter() -> None:
    _, output = drawn(picture_of(page_tile(Repeats=[1, 1, 3, 2])))
    first = list(output.labels)[:9]
    assert [label.text for label in first] == ["0A", "1A", "2A", "0B", "1B", "2B", "0?", "1?", "2?"]
    assert first[6].is_wrong
    assert first[6].says.endswith("an error: Repeats has no such copy")
    for repeats in (None, [1, 1]):
        _, output = drawn(picture_of(page_tile(Repeats=repeats)))
        assert all(label.text.endswith("?") for label in output.labels)


def test_elements_of_the_output_have_their_own_numbers_where_the_dimension_counts_differ() -> None:
    source = {"Type": 1, "Desc": {"DataType": 1, "Sizes": [2, 3]}}
    tables = drawn(picture_of(page_tile(InputTensor=source)))
    assert [label.text for label in tables[1].labels][:3] == ["0", "1", "2"]
    assert [entry.symbol for entry in legend(tables)] == ["0"]


def touching(table: MemoryTable) -> Iterator[tuple[CellLabel, CellLabel]]:
    """Yield the labels beside and above each other, and those at the ends of neighbouring rows."""
    rows = [row.labels for row in table.rows]
    for row in rows:
        yield from pairwise(row)
    for row, below in pairwise(rows):
        yield from zip(row, below, strict=False)
        if row and below:
            yield row[-1], below[0]


def copy_of(label: CellLabel) -> str:
    return label.says.rpartition(", copy ")[2]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from((1, 2, 3, 8, 9)), st.integers(0, 2)), min_size=1, max_size=4),
    st.sampled_from((40, 76, 112)),
)
def test_no_two_copies_that_touch_share_a_colour(dimensions: list[tuple[int, int, int]], width: int) -> None:
    sizes, repeats, padding = (list(values) for values in zip(*dimensions, strict=True))
    strides, reach = list[int](), 1
    for size, repeat, unused in reversed(dimensions):
        strides.insert(0, reach)
        reach = reach * size * repeat + unused
    laid = {"output_strides": strides} if any(padding) else {}
    *_, output = drawn(laid_out(sizes, repeats, "INT8", **laid), width=width)
    for one, other in touching(output):
        if one.colour is not None and other.colour is not None and copy_of(one) != copy_of(other):
            assert one.colour != other.colour


def test_letters_look_like_no_digits_and_no_two_copies_have_the_same() -> None:
    assert [letters(number) for number in (0, 7, 8, 23, 24, 48)] == ["A", "H", "J", "Z", "AA", "BA"]
    assert len({letters(number) for number in range(10_000)}) == 10_000


def test_black_on_the_colours_has_enough_contrast() -> None:
    for colour in COLOURS:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )  # as WCAG 2 defines it
        assert (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) / 0.05 >= 7


# Legends


def test_the_copies_in_the_legend_are_few() -> None:
    entries = copies(drawn(laid_out([1], [200])))
    assert [entry.symbol for entry in entries[:2]] == ["A", "B"]
    assert (entries[-1].symbol, entries[-1].means) == ("and 188 more", f"to {letters(199)}")
    assert len(entries) == 13


# Parts of large tensors


def test_a_large_tensor_is_shown_in_part() -> None:
    source, output = laid_out([1000, 1000], [2, 2]).tensors
    assert (len(source.cells), source.shown) == (MAX_CELLS, MAX_CELLS)
    for memory, count in (source, 1000000), (output, 4000000):
        assert memory.part == f"shown: the first 256 of {count} elements, in the order of their addresses"
    assert laid_out([2], [2]).tensors[0].part == ""


def test_a_tensor_of_few_addresses_is_shown_as_a_whole() -> None:
    source, _ = laid_out([UINT_MAX, 2], [1, 1], strides=[0, 1]).tensors
    assert source.is_whole
    assert source.shown == 2 * UINT_MAX
    assert [cell.count for cell in source.cells] == [UINT_MAX, UINT_MAX]


@pytest.mark.long
@pytest.mark.parametrize(
    ("stride", "output_stride"),
    [
        (UINT_MAX, 0),
        *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in ((0, 1), (1, UINT_MAX), (UINT_MAX, 7))),
    ],
)
def test_the_largest_of_tensors_takes_little_memory(stride: int, output_stride: int) -> None:
    strides = [stride - i % 2 * (stride > 1) for i in range(8)]
    with at_most(10 * 2**20):
        tables = drawn(laid_out([UINT_MAX] * 8, [1] * 8, strides=strides, output_strides=[output_stride] * 8))
    assert all(len(table.rows) <= 2 * MAX_CELLS + 1 for table in tables)


# Images and pages

STRIDED: Final = str(EXAMPLES / "strided.json")
MODEL: Final = str(EXAMPLES / "models" / "two_tiles.onnx")
PAIR: Final = tile_json([2], [2])
LONG: Final = tile_json([1, 1, 2, 3], [1, 1, 1, 2], "INT64")
INT64: Final = TileOperatorDesc.from_input(data_type="INT64", sizes=[2, 3], repeats=[1, 2])
ONE_TENSOR: Final = PAIR | {"OutputTensor": None}
NO_OUTPUT: Final = "OutputTensor cannot be drawn: it is null\n"
NO_TILE: Final = "cannot be drawn: it is no Tile operator\n"
SVG: Final = "{http://www.w3.org/2000/svg}"
OUTSIDE_THE_FILE: Final = re.compile(r"<script|<link|<img|@import|url\(|\bsrc=", re.IGNORECASE)


# Terminals


def lines_of(name: str, width: int) -> list[Line]:
    return list(picture_lines(picture(TILES[name]), width))


def terminal(width: int, **options: Any) -> str:
    file = StringIO()
    file.isatty = lambda: True  # type: ignore[method-assign]
    console = Console(width=width, force_terminal=True, file=file, highlight=False, markup=False, **options)
    with console.capture() as capture:
        print_lines(console, lines_of("packed", width))
    return capture.get()


def test_a_tiny_terminal_gets_a_picture_too() -> None:
    assert "4J" in terminal(1, color_system=None)


@pytest.mark.parametrize("name", TILES)
def test_each_colour_has_a_letter_or_sign_of_its_own(name: str) -> None:
    rows = [line for line in lines_of(name, 80) if line.is_whole]
    colours: dict[str, set[str]] = {}
    for row in rows:
        for part in row.parts:
            text, style = (part, "") if isinstance(part, str) else part
            if "#8b0000" in style:
                assert set(text) & set("!>?")
            elif "on #" in style:
                colours.setdefault(text[-1], set()).add(style)
    assert all(len(styles) == 1 for styles in colours.values())
    assert all(row.plain.isascii() for row in rows)


def test_colours_are_shown_where_there_are_some() -> None:
    shown = terminal(80, color_system="truecolor")
    for colour in COLOURS:
        assert f"48;2;{';'.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))}m" in shown
    assert "48;" not in terminal(80, color_system="truecolor", no_color=True)


# Files


@pytest.mark.parametrize("name", TILES)
def test_all_parts_of_an_svg_stay_within_it(name: str) -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES[name]), said("x" * 300)))
    width, height = (float(image.attrib[side]) for side in ("width", "height"))
    for rect in image.iter(f"{SVG}rect"):
        assert float(rect.get("x", 0)) + float(rect.attrib["width"]) <= width
        assert float(rect.get("y", 0)) + float(rect.attrib["height"]) <= height
    for text in image.iter(f"{SVG}text"):
        assert float(text.attrib["y"]) <= height
        if text.attrib["text-anchor"] == "start":
            assert float(text.attrib["x"]) + 8.5 * len(text.text or "") <= width


@pytest.mark.parametrize(
    ("value", "options", "status", "stdout", "stderr"),
    [
        (SHARED, "", 1, "  error[DML-BUFFER-Strides-overlap] E_INVALIDARG", ""),
        (LONG, "", 0, "0B  1B  2B", ""),
        (LONG, "--target windows-11-21h2", 1, "  error[DML-TILE-DataType-level]", ""),
        (ONE_TENSOR, "", 1, f"  {NO_OUTPUT}", ""),
        ({"Type": "DML_OPERATOR_GEMM", "Desc": None}, "", 1, f"  {NO_TILE}", ""),
        (None, "", 1, f"  {NO_TILE}", ""),
        ([], "", 0, "", "dml-tile: a.json: there is no tile to draw\n"),
        ([PAIR, SHARED], "--pointer /0", 0, "a.json#/0: accepted", ""),
        ([PAIR, SHARED], "--pointer /7", 2, "", "there is no such tile; there are /0, /1"),
        ({"Type": "DML_OPERATOR_GEMM", "Desc": None}, "--output a.svg", 1, "", NO_TILE),
        ([PAIR, SHARED], "--output a.svg", 2, "", "an image is of one tile; choose one with --pointer: /0, /1"),
        ([], "--output a.svg", 2, "", "dml-tile: a.json: "),
        ('"no descriptor"', "--output a.svg", 2, "", "dml-tile: a.json: "),
        (PAIR, "--output a.html", 2, "", "does not end in .svg"),
        (PAIR, "--output svg", 2, "", "does not end in .svg"),
        (PAIR, "--output nowhere/a.svg", 2, "", "nowhere/a.svg: No such file or directory"),
    ],
)
def test_what_can_be_drawn_is_printed_and_what_cannot_has_a_reason_and_no_file(
    show: Call, value: Any, options: str, status: int, stdout: str, stderr: str
) -> None:
    result = show(write("a.json", value), *options.split())
    assert result.exit_code == status
    for text, expected in (result.stdout, stdout), (result.stderr, stderr):
        assert expected in text if expected else not text
    assert list(Path().iterdir()) == [Path("a.json")]


@pytest.mark.parametrize("options", [("show", "--output", "tile.svg"), ("lower", "--format", "json")])
def test_of_a_folder_s_tiles_one_is_chosen_by_its_file(call: Call, options: tuple[str, ...]) -> None:
    write("in/a.json", SHARED)
    write("in/b.json", [tile_json([2], [2])] * 2)
    errors = errors_of(call, *options, "in", "-t", "6_4")
    assert errors.endswith(f"is of one tile; name one of the files: {Path('in/a.json')}, {Path('in/b.json')}\n")


def test_all_tiles_of_a_file_are_drawn_up_to_a_number(show: Call) -> None:
    few = show(write("few.json", [PAIR] * 2))
    assert few.stdout.count("InputTensor: ") == 2
    many = show(write("many.json", [*([PAIR] * (MAX_TILES + 1)), SHARED]))
    assert many.stdout.count("InputTensor: ") == MAX_TILES
    assert many.stdout.endswith(
        f"2 more tiles are not drawn; choose one with --pointer: /{MAX_TILES}, /{MAX_TILES + 1}\n"
    )
    assert many.exit_code == 1


def test_a_node_is_drawn_as_the_descriptor_that_does_the_same_if_all_of_it_is_known(show: Call) -> None:
    result = show(MODEL, "--dim", "batch=4", "--pointer", "number")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{MODEL}#number: accepted" in result.stdout
    assert "OutputTensor: INT64, 64 elements of 8 bytes" in result.stdout
    result = show(MODEL, "--pointer", "number")
    assert result.exit_code == 1
    assert "cannot be drawn: not all of it is known before the model runs; try --dim batch=SIZE\n" in result.stdout
    assert "known at run time only: Repeats" in result.stdout


@pytest.mark.parametrize(
    ("shape", "data_type", "why"),
    [
        ([2, 3, 4], onnx.TensorProto.FLOAT, "its own specification rules it out"),
        ([2, 0], onnx.TensorProto.FLOAT, "no descriptor does the same"),
        ([2, 3], onnx.TensorProto.COMPLEX64, "no descriptor does the same"),
    ],
)
def test_a_node_without_a_descriptor_cannot_be_drawn(show: Call, shape: list[int], data_type: int, why: str) -> None:
    result = show(save("wrong.onnx", inputs=[typed("x", shape, data_type)]))
    assert result.exit_code == 1
    assert f"cannot be drawn: {why}\n" in result.stdout


# Names from files

NASTY: Final = 'a\x1b[31m<script>alert("&")</script>\x00\u202e]]>'


def test_names_from_files_are_escaped_everywhere(show: Call) -> None:
    dispatchables = {NASTY: {"type": "TILE", "desc": tile_json([2], [2])}}
    name = write("nasty.json", model(dispatchables=dispatchables, commands=[]))
    assert show(name, "--output", "nasty.svg").exit_code == 0
    text = Path("nasty.svg").read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not any(sign in text for sign in "\x1b\x00\u202e")
    ElementTree.fromstring(text)


def test_a_long_name_takes_a_bounded_part_of_an_image() -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES["packed"]), said("x" * 10**6)))
    assert float(image.attrib["height"]) < 1200


def test_the_largest_of_tensors_makes_no_large_file() -> None:
    assert len(picture_svg(picture(HUGE), said("huge"))) < 500_000


# In Python and in notebooks


def test_a_picture_is_what_the_command_line_draws(show: Call) -> None:
    Path("descriptor").write_text(GOOD.model_dump_json(by_alias=True))
    show("descriptor", "--output", "image.svg")
    picture = dml_tile.show(GOOD)
    assert picture.svg == Path("image.svg").read_text(encoding="utf-8")
    assert picture.svg in picture._repr_html_()


def test_a_picture_has_the_findings_at_its_target() -> None:
    assert "DML-TILE-DataType-level" not in dml_tile.show(INT64).svg
    with dml_tile.simulate("windows-11-21h2"):
        assert "DML-TILE-DataType-level" in dml_tile.show(INT64).svg
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
