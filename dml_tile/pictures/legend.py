"""The texts of a picture: the facts of each tensor, and a legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dml_tile.pictures.marks import CUT, MORE, NO_COPY, OUTSIDE, PADDING, SAME, SHARED
from dml_tile.pictures.memory import TensorMemory
from dml_tile.pictures.table import MemoryTable
from dml_tile.pictures.tile import TilePicture
from dml_tile.text import braced

COPIES: Final = "copies of the input, by their index:"
"""Stands above the copies."""

_MAX_COPIES: Final = 12
_SYMBOLS: Final = (
    (PADDING, "padding: no element lies there"),
    (f"{SAME}1", "element 1 lies at the same address"),
    (f"{MORE}1", "1 more element at the same address, or as many as the number tells"),
    (SHARED, "an error: elements of the output share these bytes"),
    (OUTSIDE, "an error: the element ends beyond TotalTensorSizeInBytes"),
    (NO_COPY, "an error: Repeats has no such copy"),
    (CUT, "cut short"),
)


class Entry(NamedTuple):
    """An entry of a legend: what stands in the picture, what it means, and its place in COLOURS, if any."""

    symbol: str
    means: str
    colour: int | None = None


def heading(memory: TensorMemory) -> str:
    """A tensor in one line: ``InputTensor: FLOAT32, 6 elements of 4 bytes``."""
    size = _counted(memory.element_size, "byte")
    return f"{memory.name}: {memory.data_type}, {_counted(memory.elements, 'element')} of {size}"


def facts(memory: TensorMemory) -> Iterator[tuple[str, str]]:
    """A tensor's fields by their names; strides are those in force."""
    yield "Sizes", braced(memory.sizes)
    yield "Strides", f"{braced(memory.strides)}{' (packed)' if memory.is_packed else ''}"
    yield "TotalTensorSizeInBytes", str(memory.total)


def part(memory: TensorMemory) -> str:
    """The part of a tensor that is shown; empty if all of it is."""
    if memory.is_whole:
        return ""
    return f"shown: the first {memory.shown} of {memory.elements} elements, in the order of their addresses"


def legend(tables: Sequence[MemoryTable]) -> Iterator[Entry]:
    """The meaning of what stands in the tables; of nothing else."""
    characters = {character for table in tables for mark in table.marks for character in mark.text}
    if characters:
        yield Entry("0", "an element, by its number in row-major order")
    if "A" in characters:
        yield Entry("0A", "element 0 of the input, where copy A of the input shows it")
    for symbol, means in _SYMBOLS:
        if symbol[0] in characters:
            yield Entry(symbol, means)


def copies(tables: Sequence[MemoryTable]) -> list[Entry]:
    """The first copies that are shown, by their letters, with their indices; the last entry may stand for the rest."""
    named = [(name, *copy) for table in tables for name, copy in table.copies.items()]
    entries = [Entry(name, braced(index), colour) for name, index, colour in named[:_MAX_COPIES]]
    more = len(named) - len(entries)
    return [*entries, Entry(f"and {more} more", f"to {named[-1][0]}")] if more else entries


def undrawn(picture: TilePicture) -> Iterator[str]:
    """The reason for each tensor that is not drawn."""
    for name, why in picture.undrawn.items():
        yield f"{name} cannot be drawn: {why}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
