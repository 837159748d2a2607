"""Pictures of random tiles: each element is drawn where it lies, and shows what numpy.tile would put there."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.pictures.labels import TilePicture, picture_of
from dml_tile.pictures.memory import MAX_CELLS
from dml_tile.pictures.picture import picture_svg
from dml_tile.pictures.table import MemoryTable, picture_lines, table_of
from dml_tile.reports.lines import Line
from tests.helpers import strategies
from tests.helpers.strided_tiles import element_addresses

LABEL: Final = re.compile(r"(\d+)([A-Z]*)(=\d+[A-Z]*)?(?:\+(\d+))?")
widths = st.sampled_from([16, 40, 80, 120])


def labels_by_address(table: MemoryTable) -> Iterator[tuple[int, str]]:
    for row in table.rows:
        for i, label in enumerate(row.labels):
            yield int(row.address) + i * table.tensor.element_size, label.text


def tables(picture: TilePicture, width: int) -> list[MemoryTable]:
    return [table_of(picture, memory, width, spaces=1) for memory in picture.tensors]


@given(desc=strategies.tiles(max_elements=400), width=widths)
def test_each_element_is_drawn_where_it_lies(desc: TileOperatorDesc, width: int) -> None:
    for buffer, table in zip(described(desc), tables(picture_of(desc), width), strict=True):
        lies = Counter(element_addresses(buffer).ravel().tolist())
        shown = dict(sorted(lies.items())[:MAX_CELLS])
        labels = dict(labels_by_address(table))
        assert {address for address, text in labels.items() if text != "."} == set(shown)
        for address, elements in shown.items():
            counted = LABEL.fullmatch(labels[address])
            assert counted
            assert 1 + bool(counted[3]) + int(counted[4] or 0) == elements
        assert table.tensor.shown == sum(shown.values())
        assert table.tensor.is_whole == (len(lies) <= MAX_CELLS)


@given(desc=strategies.tiles(max_elements=400), width=widths)
def test_each_element_of_the_output_shows_what_numpy_would_put_there(desc: TileOperatorDesc, width: int) -> None:
    source, destination = described(desc)
    sizes, repeats = source.sizes or (), desc.repeats or ()
    tiled = np.tile(np.arange(np.prod(sizes)).reshape(sizes), repeats)
    copied = np.kron(np.arange(np.prod(repeats)).reshape(repeats), np.ones(sizes, int))
    expected = zip(tiled.ravel().tolist(), copied.ravel().tolist(), strict=True)
    lies = dict(zip(element_addresses(destination).ravel().tolist(), expected, strict=True))
    letters: dict[int, set[str]] = defaultdict(set)
    _, table = tables(picture_of(desc), width)
    for address, text in labels_by_address(table):
        if text != ".":
            number, copy = lies[address]
            parts = LABEL.fullmatch(text)
            assert parts
            assert int(parts[1]) == number
            letters[copy].add(parts[2])
    assert all(len(of_copy) == 1 for of_copy in letters.values())
    assert len(set.union(*letters.values())) == len(letters)


@pytest.mark.long
@given(desc=strategies.tiles() | strategies.nearly_valid_tiles() | strategies.invalid_tiles(), width=widths)
def test_whatever_a_descriptor_holds_is_drawn_within_bounds(desc: TileOperatorDesc, width: int) -> None:
    picture = picture_of(desc)
    assert len(picture.tensors) + len(picture.undrawn) == 2
    rows = [line.plain for line in picture_lines(picture, max(width, 40)) if line.is_whole]
    assert len(rows) <= 2 * (2 * MAX_CELLS + 2)
    assert all(row.isascii() for row in rows)
    said = [Line(0, "tile")]
    assert len(ElementTree.fromstring(picture_svg(picture, said))) > 3


@given(desc=strategies.nearly_valid_tiles() | strategies.tiles(), width=st.sampled_from([40, 80]))
def test_rows_fit_the_terminal(desc: TileOperatorDesc, width: int) -> None:
    for line in picture_lines(picture_of(desc), width):
        assert not line.is_whole or line.indent + len(line.plain) <= width
