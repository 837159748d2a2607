"""Pictures of a tile's memory: the place of each element, and the marks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX
from dml_tile.pictures.marks import COLOURS, Mark, TilePicture, letters, picture_of
from dml_tile.pictures.memory import MAX_CELLS
from dml_tile.pictures.table import MemoryTable, copies, legend, part, table_of, undrawn
from tests.helpers.descriptors import page_tile


def picture(sizes: list[int], repeats: list[int], data_type: str = "UINT8", **strides: list[int]) -> TilePicture:
    return picture_of(TileOperatorDesc.from_input(data_type=data_type, sizes=sizes, repeats=repeats, **strides))


def drawn(shown: TilePicture, width: int = 76) -> list[MemoryTable]:
    return [table_of(shown, memory, width, spaces=1) for memory in shown.tensors]


def grid(table: MemoryTable) -> dict[str, str]:
    """Return the rows of a table by their addresses."""
    return {row.address: row.gap or " ".join(mark.text for mark in row.marks) for row in table.rows}


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
    assert list(undrawn(shown)) == [why]
    assert len(shown.tensors) == 1
    assert all(mark.colour is None for table in drawn(shown) for mark in table.marks)


@pytest.mark.parametrize("desc", [None, OperatorDesc(type=70, desc=None), OperatorDesc(type=1, desc=None)])
def test_another_operator_cannot_be_drawn(desc: OperatorDesc | None) -> None:
    assert list(undrawn(picture_of(desc))) == ["the tile cannot be drawn: it is no tile"]


# Rows


def test_long_rows_are_cut_into_even_pieces_and_many_short_rows_share_one() -> None:
    _, output = drawn(picture([2, 3], [1, 3], "INT16"), width=30)
    assert grid(output) == {
        "0": "0A 1A 2A 0B 1B", "10": "2B 0C 1C 2C",
        "18": "3A 4A 5A 3B 4B", "28": "5B 3C 4C 5C",
    }  # fmt: skip
    assert list(grid(drawn(picture([40], [1]))[0])) == ["0", "16", "32"]
    source, output = drawn(picture([8, 4, 4, 1], [1, 1, 1, 2]))
    assert [len(row.marks) for row in source.rows] == [16] * 8
    assert [len(row.marks) for row in output.rows] == [8] * 32


def test_short_padding_is_drawn_and_long_padding_is_counted_also_behind_the_elements() -> None:
    source, output = drawn(picture([2, 3], [1, 1], "INT32", strides=[5, 1], output_strides=[100, 1]))
    assert grid(source) == {"0": "0 1 2 . .", "20": "3 4 5"}
    assert list(grid(output).values())[1:] == ["332 bytes of padding", "3A 4A 5A"]
    assert grid(output)["68"] == "332 bytes of padding"
    shown = picture_of(page_tile(InputTensor__TotalTensorSizeInBytes=40, OutputTensor__TotalTensorSizeInBytes=1000))
    source, output = drawn(shown)
    assert grid(source) == {"0": "0 1 2", "12": "3 4 5", "24": "16 bytes of padding"}
    assert grid(output)["216"] == "784 bytes of padding"


# Marks


def test_elements_at_one_address_are_marked_and_named() -> None:
    source, _ = drawn(picture([2, 3], [1, 1], "FLOAT16", strides=[0, 1]))
    first = next(source.marks)
    assert (first.text, first.is_wrong) == ("0=3", False)
    assert first.says == "bytes 0 to 1: InputTensor[0, 0], InputTensor[1, 0]"


def test_shared_bytes_of_an_output_are_an_error() -> None:
    _, output = drawn(picture([2, 3], [1, 2], output_strides=[3, 1]))
    marks = list(output.marks)
    assert marks[3].text == "0B=3A!"
    assert marks[3].says == (
        "byte 3: OutputTensor[0, 3], OutputTensor[1, 0] shows InputTensor[0, 0], copy B; "
        "an error: elements of an output share bytes"
    )
    assert [mark.is_wrong for mark in marks] == [False] * 3 + [True] * 3 + [False] * 6


def test_elements_beyond_the_total_are_an_error() -> None:
    _, output = drawn(picture_of(page_tile(OutputTensor__TotalTensorSizeInBytes=214)))
    *_, within, beyond = output.marks
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
    first = list(output.marks)[:9]
    assert [mark.text for mark in first] == ["0A", "1A", "2A", "0B", "1B", "2B", "0?", "1?", "2?"]
    assert first[6].is_wrong
    assert first[6].says.endswith("an error: Repeats has no such copy")
    for repeats in (None, [1, 1]):
        _, output = drawn(picture_of(page_tile(Repeats=repeats)))
        assert all(mark.text.endswith("?") for mark in output.marks)


def test_elements_of_the_output_have_their_own_numbers_where_the_dimension_counts_differ() -> None:
    source = {"Type": 1, "Desc": {"DataType": 1, "Sizes": [2, 3]}}
    _, output = drawn(picture_of(page_tile(InputTensor=source)))
    assert [mark.text for mark in output.marks][:3] == ["0", "1", "2"]


def touching(table: MemoryTable) -> Iterator[tuple[Mark, Mark]]:
    """Yield the marks beside and above each other, and those at the ends of neighbouring rows."""
    rows = [row.marks for row in table.rows]
    for row in rows:
        yield from pairwise(row)
    for row, below in pairwise(rows):
        yield from zip(row, below, strict=False)
        if row and below:
            yield row[-1], below[0]


def copy_of(mark: Mark) -> str:
    return mark.says.rpartition(", copy ")[2]


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
    *_, output = drawn(picture(sizes, repeats, "INT8", **laid), width=width)
    for one, other in touching(output):
        if one.colour is not None and other.colour is not None and copy_of(one) != copy_of(other):
            assert one.colour != other.colour


@pytest.mark.parametrize(("number", "expected"), [(0, "A"), (7, "H"), (8, "J"), (23, "Z"), (24, "AA"), (48, "BA")])
def test_letters_look_like_no_digits(number: int, expected: str) -> None:
    assert letters(number) == expected


def test_no_two_copies_have_the_same_letters() -> None:
    assert len({letters(number) for number in range(10_000)}) == 10_000


def test_black_on_the_colours_has_enough_contrast() -> None:
    for colour in COLOURS:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )  # as WCAG 2 defines it
        assert (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) / 0.05 >= 7


# Legends


def test_the_legend_has_the_signs_that_are_drawn_and_no_others() -> None:
    plain = {entry.symbol for entry in legend(drawn(picture([2, 3], [1, 2], "FLOAT32")))}
    assert plain == {"0", "0A"}
    padded = {entry.symbol for entry in legend(drawn(picture([2, 3], [1, 2], strides=[0, 2], output_strides=[8, 1])))}
    assert padded == {"0", "0A", ".", "=1"}


def test_the_copies_in_the_legend_are_few() -> None:
    entries = copies(drawn(picture([1], [200])))
    assert [entry.symbol for entry in entries[:2]] == ["A", "B"]
    assert (entries[-1].symbol, entries[-1].means) == ("and 188 more", f"to {letters(199)}")
    assert len(entries) == 13


# Parts of large tensors


def test_a_large_tensor_is_shown_in_part() -> None:
    source, output = picture([1000, 1000], [2, 2]).tensors
    assert (len(source.cells), source.shown) == (MAX_CELLS, MAX_CELLS)
    for memory, count in (source, 1000000), (output, 4000000):
        assert part(memory) == f"shown: the first 256 of {count} elements, in the order of their addresses"
    assert part(picture([2], [2]).tensors[0]) == ""


def test_a_tensor_of_few_addresses_is_shown_as_a_whole() -> None:
    source, _ = picture([UINT_MAX, 2], [1, 1], strides=[0, 1]).tensors
    assert source.is_whole
    assert source.shown == 2 * UINT_MAX
    assert [cell.count for cell in source.cells] == [UINT_MAX, UINT_MAX]


@pytest.mark.long
@pytest.mark.parametrize(("stride", "output_stride"), [(0, 1), (1, UINT_MAX), (UINT_MAX, 0), (UINT_MAX, 7)])
def test_the_largest_of_tensors_takes_little_memory(stride: int, output_stride: int) -> None:
    strides = [stride - i % 2 * (stride > 1) for i in range(8)]
    tracemalloc.start()
    tables = drawn(picture([UINT_MAX] * 8, [1] * 8, strides=strides, output_strides=[output_stride] * 8))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * 2**20
    assert all(len(table.rows) <= 2 * MAX_CELLS + 1 for table in tables)
