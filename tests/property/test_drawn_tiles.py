"""Pictures of random tiles: each element is drawn where it lies, and shows what numpy.tile would put there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.pictures.marks import TilePicture, picture_of
from dml_tile.pictures.memory import MAX_CELLS
from dml_tile.pictures.picture import picture_html, picture_svg
from dml_tile.pictures.table import MemoryTable, picture_lines, table_of
from dml_tile.testing import strategies
from tests.helpers.drawn_tiles import said

MARK: Final = re.compile(r"(\d+)([A-Z]*)(=\d+[A-Z]*)?(?:\+(\d+))?")
Elements = dict[int, list[tuple[int, ...]]]

widths = st.sampled_from([16, 40, 80, 120])


def elements_by_address(buffer: BufferTensorDesc) -> Elements:
    """Return the indices of a tensor's elements, by the byte at which they begin."""
    sizes = buffer.sizes or ()
    packed = [int(np.prod(sizes[i:], dtype=np.int64)) for i in range(1, len(sizes) + 1)]
    strides = packed if buffer.strides is None else buffer.strides
    found: Elements = defaultdict(list)
    for index in np.ndindex(*sizes):
        offset = sum(i * stride for i, stride in zip(index, strides, strict=True))
        found[offset * ELEMENT_SIZES[buffer.data_type]].append(index)
    return found


def marks_by_address(table: MemoryTable) -> Iterator[tuple[int, str]]:
    for row in table.rows:
        for i, mark in enumerate(row.marks):
            yield int(row.address) + i * table.tensor.element_size, mark.text


def tensors(desc: TileOperatorDesc) -> tuple[BufferTensorDesc, BufferTensorDesc]:
    found = [tensor.desc for tensor in (desc.input_tensor, desc.output_tensor) if tensor and tensor.desc]
    return found[0], found[1]


def tables(picture: TilePicture, width: int) -> list[MemoryTable]:
    return [table_of(picture, memory, width, spaces=1) for memory in picture.tensors]


@given(desc=strategies.tiles(max_elements=400), width=widths)
def test_each_element_is_drawn_where_it_lies(desc: TileOperatorDesc, width: int) -> None:
    for buffer, table in zip(tensors(desc), tables(picture_of(desc), width), strict=True):
        lies = elements_by_address(buffer)
        shown = dict(sorted(lies.items())[:MAX_CELLS])
        marks = dict(marks_by_address(table))
        assert {address for address, text in marks.items() if text != "."} == set(shown)
        for address, indices in shown.items():
            counted = MARK.fullmatch(marks[address])
            assert counted
            assert 1 + bool(counted[3]) + int(counted[4] or 0) == len(indices)
        assert table.tensor.shown == sum(map(len, shown.values()))
        assert table.tensor.is_whole == (len(lies) <= MAX_CELLS)


@given(desc=strategies.tiles(max_elements=400), width=widths)
def test_each_element_of_the_output_shows_what_numpy_would_put_there(desc: TileOperatorDesc, width: int) -> None:
    source, destination = tensors(desc)
    numbers = np.arange(np.prod(source.sizes or ())).reshape(source.sizes or ())
    tiled = np.tile(numbers, desc.repeats or ())
    copies = np.arange(np.prod(desc.repeats or ())).reshape(desc.repeats or ())
    copied = copies
    for axis, size in enumerate(source.sizes or ()):
        copied = np.repeat(copied, size, axis)
    letters: dict[int, set[str]] = defaultdict(set)
    _, table = tables(picture_of(desc), width)
    lies = elements_by_address(destination)
    for address, text in marks_by_address(table):
        if text != ".":
            (index,) = lies[address]
            parts = MARK.fullmatch(text)
            assert parts
            assert int(parts[1]) == tiled[index]
            letters[int(copied[index])].add(parts[2])
    assert all(len(of_copy) == 1 for of_copy in letters.values())
    assert len(set.union(*letters.values())) == len(letters)


@pytest.mark.long
@given(desc=strategies.tiles() | strategies.nearly_valid_tiles() | strategies.invalid_tiles(), width=widths)
def test_whatever_a_descriptor_holds_is_drawn_within_bounds(desc: TileOperatorDesc, width: int) -> None:
    picture = picture_of(desc)
    assert len(picture.tensors) + len(picture.undrawn) == 2
    rows = [line.text.plain for line in picture_lines(picture, max(width, 40)) if line.is_whole]
    assert len(rows) <= 2 * (2 * MAX_CELLS + 2)
    assert all(row.isascii() for row in rows)
    assert len(ElementTree.fromstring(picture_svg(picture, said("tile")))) > 3
    HTMLParser().feed(picture_html(picture, said("tile")))


@given(desc=strategies.nearly_valid_tiles() | strategies.tiles(), width=st.sampled_from([40, 80]))
def test_rows_fit_the_terminal(desc: TileOperatorDesc, width: int) -> None:
    for line in picture_lines(picture_of(desc), width):
        assert not line.is_whole or line.indent + len(line.text) <= width
