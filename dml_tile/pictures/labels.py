"""A tile's two tensors as memory, and the origin of each element of the output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import floordiv, lt, mod
from typing import Final, NamedTuple

from dml_tile.descriptors.operator import OperatorDesc, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.pictures.memory import Index, MemoryCell, TensorPicture, tensor_picture
from dml_tile.rules.tensor import Operand


@dataclass(frozen=True, slots=True)
class ElementOrigin:
    """The origin of an element of the output: an element of the input, and the input's copy that has it.

    ``copy`` has an index for each of Repeats; ``number`` counts the copies, None if Repeats has no such copy.
    """

    source: Index
    copy: Index
    number: int | None


@dataclass(frozen=True, slots=True)
class TilePicture:
    """The tensors of a tile that can be drawn, and for each other tensor a sentence with the reason."""

    tensors: tuple[TensorPicture, ...]
    undrawn: tuple[str, ...]
    repeats: tuple[int, ...]

    def origin(self, tensor: TensorPicture, index: Index) -> ElementOrigin | None:
        """Return the origin of an element of the output; None for an element of the input, and if unknown."""
        if not tensor.operand.is_output or len(self.tensors) < 2:
            return None
        sizes = self.tensors[0].sizes
        if len(sizes) != len(index):
            return None
        copy, repeats = tuple(map(floordiv, index, sizes)), self.repeats[: len(index)]
        is_repeated = len(repeats) == len(copy) and all(map(lt, copy, repeats))
        return ElementOrigin(tuple(map(mod, index, sizes)), copy, row_major(copy, repeats) if is_repeated else None)

    def copies(self, tensor: TensorPicture) -> dict[int, Index]:
        """Return the copies of the input that a tensor shows, by number, with their indices."""
        origins = (self.origin(tensor, cell.indices[0]) for cell in tensor.cells)
        return {each.number: each.copy for each in origins if each and each.number is not None}

    def preferred_colour(self, copy: Index) -> int:
        """Return a place in COLOURS by which copies beside each other in a dimension differ."""
        repeated = [i for i, repeat in zip(copy, self.repeats, strict=False) if repeat > 1]
        return sum(i * step for i, step in zip(reversed(repeated), _STEPS, strict=False)) % len(COLOURS)


def row_major(index: Index, sizes: tuple[int, ...]) -> int:
    """Return the number of an element in row-major order, from 0."""
    return sum(i * math.prod(sizes[dimension:]) for dimension, i in enumerate(index, start=1))


def picture_of(desc: OperatorDesc | TileOperatorDesc | None) -> TilePicture:
    """Return the picture of a descriptor; an operator that is not a tile has nothing to draw."""
    tile = tile_of(desc)
    if tile is None:
        return no_picture("it is no Tile operator")
    tensors, undrawn = [], []
    for name, tensor in (("InputTensor", tile.input_tensor), ("OutputTensor", tile.output_tensor)):
        drawn = tensor_picture(Operand(name, tensor, is_output=name == "OutputTensor"))
        if isinstance(drawn, str):
            undrawn.append(f"{name} cannot be drawn: {drawn}")
        else:
            tensors.append(drawn)
    return TilePicture(tuple(tensors), tuple(undrawn), tile.repeats or ())


def no_picture(why: str) -> TilePicture:
    """Return a picture without tensors."""
    return TilePicture((), (f"cannot be drawn: {why}",), ())


Cells = Sequence[int | None]
"""A row of a picture: the number of each cell's copy, None for no copy."""


def colours_of(rows: Sequence[Cells], preferred: Mapping[int, int]) -> dict[int, int]:
    """Return a colour, a place in COLOURS, for each copy in the rows.

    Copies touch if their cells are beside or above each other, or the last and the first of two rows. Each copy gets
    its preferred colour if no copy that it touches has that colour; copies that touch the most colours come first.
    """
    touching: dict[int, set[int]] = {copy: set() for row in rows for copy in row if copy is not None}
    for one, other in _touching(rows):
        touching[one].add(other)
        touching[other].add(one)
    taken: dict[int, set[int]] = {copy: set() for copy in touching}
    colours: dict[int, int] = {}
    while taken:
        copy = max(taken, key=lambda each: (len(taken[each]), len(touching[each]), -each))
        used = taken.pop(copy)
        choices = (preferred[copy], *range(len(COLOURS)))
        colours[copy] = colour = next((each for each in choices if each not in used), choices[0])
        for other in touching[copy] & taken.keys():
            taken[other].add(colour)
    return colours


def _touching(rows: Sequence[Cells]) -> Iterator[tuple[int, int]]:
    beside = (pair for row in rows for pair in pairwise(row))
    above = (pair for row, below in pairwise(rows) for pair in zip(row, below, strict=False))
    around = ((row[-1], below[0]) for row, below in pairwise(rows) if row and below)
    for pairs in (beside, above, around):
        for one, other in pairs:
            if one is not None and other is not None and one != other:
                yield one, other


COLOURS: Final = ("#e69f00", "#9ad4f5", "#35b58c", "#f0e442", "#5a9fd4", "#e8763a", "#d99abf")
"""The colours of copies: Okabe and Ito's, for red-green colour blindness too, and light enough for black text."""

PADDING: Final = "."
SAME: Final = "="
MORE: Final = "+"
SHARED: Final = "!"
OUTSIDE: Final = ">"
NO_COPY: Final = "?"
CUT: Final = "~"
SYMBOLS: Final = (
    (PADDING, "padding: no element lies there"),
    (f"{SAME}1", "element 1 lies at the same address"),
    (f"{MORE}1", "1 more element at the same address, or as many as the number tells"),
    (SHARED, "an error: elements of the output share these bytes"),
    (OUTSIDE, "an error: the element ends beyond TotalTensorSizeInBytes"),
    (NO_COPY, "an error: Repeats has no such copy"),
    (CUT, "cut short"),
)
"""Signs in labels, and their meanings."""

_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # without I and O, which look like digits
_MAX_LABEL: Final = 10
_STEPS: Final = (1, 3, 2, 6, 4, 5, 1, 3)  # 3**i modulo 7, so that copies beside each other differ in colour


class CellLabel(NamedTuple):
    """The label of a cell; its ``text`` has all the meaning of ``colour`` (a place in COLOURS) and ``is_wrong`` too.

    ``copy`` is the number of the input's copy in the cell, None if there is none.
    """

    text: str
    says: str
    copy: int | None = None
    colour: int | None = None
    is_wrong: bool = False


def label_of(picture: TilePicture, tensor: TensorPicture, offset: int, cell: MemoryCell | None) -> CellLabel:
    """Return the label of a cell, None for one without elements; without a colour, and empty beyond the tensor."""
    first, last = tensor.byte(offset), tensor.byte(offset + 1) - 1
    says = f"byte {first}: " if first == last else f"bytes {first} to {last}: "
    if cell is None:
        return CellLabel(PADDING, f"{says}padding") if first < tensor.total else CellLabel("", "")
    text, *others = (_element(picture, tensor, index) for index in cell.indices[:2])
    named = ", ".join(f"{tensor.operand.name}{list(index)}" for index in cell.indices)
    more = cell.count - len(cell.indices)
    says += f"{named} and {more} more" if more else named
    if origin := picture.origin(tensor, cell.indices[0]):
        copy = "; an error: Repeats has no such copy" if origin.number is None else f", copy {letters(origin.number)}"
        says += f" shows InputTensor{list(origin.source)}{copy}"
    is_wrong = text.endswith(NO_COPY)
    text += "".join(f"{SAME}{other}" for other in others)
    if cell.count > 2:
        text += cut(f"{MORE}{cell.count - 2}")
    if tensor.operand.is_output and cell.count > 1:
        is_wrong, text, says = True, text + SHARED, f"{says}; an error: elements of an output share bytes"
    if last >= tensor.total:
        is_wrong, text, says = True, text + OUTSIDE, f"{says}; an error: beyond TotalTensorSizeInBytes"
    return CellLabel(text, says, origin.number if origin else None, is_wrong=is_wrong)


def _element(picture: TilePicture, tensor: TensorPicture, index: Index) -> str:
    """Return an element's number in its tensor; for an output, the input's number and the copy's letters."""
    origin = picture.origin(tensor, index)
    if origin is None:
        return cut(str(row_major(index, tensor.sizes)))
    number = cut(str(row_major(origin.source, picture.tensors[0].sizes)))
    return f"{number}{NO_COPY if origin.number is None else letters(origin.number)}"


def letters(number: int) -> str:
    """Return a copy's letters, from its number: A to Z without I and O, then AA, AB and so on."""
    written = ""
    number += 1
    while number:
        number, last = divmod(number - 1, len(_LETTERS))
        written = f"{_LETTERS[last]}{written}"
    return cut(written)


def cut(text: str, longest: int = _MAX_LABEL) -> str:
    """Return the text, if long cut short, with a sign of the cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}{CUT}"
