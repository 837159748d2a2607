"""A tile's two tensors as memory, and the origin of each element of the output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import floordiv, lt, mod
from typing import Final, NamedTuple

from dml_tile.descriptors.operator import OperatorDesc, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.pictures.memory import Index, MemoryCell, MemoryRow, TensorPicture, tensor_picture
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


def colours_of(rows: Sequence[Cells], preferred: Callable[[int], int], count: int) -> dict[int, int]:
    """Return a colour, from 0 to ``count - 1``, for each copy in the rows.

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
        choices = (preferred(copy), *range(count))
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
    """The label of a cell; its ``text`` has all the meaning of ``colour`` (a place in COLOURS) and ``is_wrong`` too."""

    text: str
    says: str
    colour: int | None = None
    is_wrong: bool = False


NOTHING: Final = CellLabel("", "")
"""The label of a cell that is not part of the tensor."""


@dataclass(frozen=True, slots=True)
class CellLabels:
    """The labels of a tensor's cells; ``colours`` are those of the copies, by their numbers."""

    picture: TilePicture
    tensor: TensorPicture
    colours: Mapping[int, int] = field(default_factory=dict)

    def of_row(self, row: MemoryRow) -> Iterator[CellLabel]:
        """Yield the labels of a row, one for each cell."""
        for i, cell in enumerate(row.cells):
            yield self._padding_label(row.offset + i) if cell is None else self._elements_label(cell)

    @property
    def longest(self) -> int:
        """The length of the longest label of a cell with elements."""
        return max(len(self._elements_label(cell).text) for cell in self.tensor.cells)

    def copies(self) -> dict[str, tuple[Index, int]]:
        """Return the copies of the input that are shown, by their letters, with their indices and colours."""
        origins = map(self._origin, self.tensor.cells)
        found = {origin.number: origin for origin in origins if origin and origin.number is not None}
        return {letters(number): (found[number].copy, self.colours[number]) for number in sorted(found)}

    def coloured(self, rows: Iterable[MemoryRow]) -> CellLabels:
        """Return the same labels with colours; copies that touch in these rows have different colours."""
        copies = [[self._origin(cell) for cell in row.cells] for row in rows]
        origins = {origin.number: origin for row in copies for origin in row if origin and origin.number is not None}
        numbers = [[origin.number if origin else None for origin in row] for row in copies]
        colours = colours_of(numbers, lambda number: self._preferred(origins[number]), len(COLOURS))
        return replace(self, colours=colours)

    def _origin(self, cell: MemoryCell | None) -> ElementOrigin | None:
        return self.picture.origin(self.tensor, cell.indices[0]) if cell else None

    def _padding_label(self, offset: int) -> CellLabel:
        if self.tensor.byte(offset) >= self.tensor.total:
            return NOTHING
        return CellLabel(PADDING, f"{self._bytes(offset)}: padding")

    def _elements_label(self, cell: MemoryCell) -> CellLabel:
        tensor = self.tensor
        origin = self._origin(cell)
        text, says, colour = self._element(cell.indices[0]), "", None
        if origin is not None:
            says = f" shows InputTensor{list(origin.source)}"
            if origin.number is None:
                says += "; an error: Repeats has no such copy"
            else:
                says += f", copy {letters(origin.number)}"
                colour = self.colours.get(origin.number)
        says = f"{self._bytes(cell.offset)}: {self._names(cell)}{says}"
        wrong = NO_COPY if text.endswith(NO_COPY) else ""
        if cell.count > 1:
            text += f"{SAME}{self._element(cell.indices[1])}"
        if cell.count > 2:
            text += cut(f"{MORE}{cell.count - 2}")
        if tensor.operand.is_output and cell.count > 1:
            wrong = SHARED
            text, says = text + SHARED, f"{says}; an error: elements of an output share bytes"
        if tensor.byte(cell.offset + 1) > tensor.total:
            wrong = OUTSIDE
            text, says = text + OUTSIDE, f"{says}; an error: beyond TotalTensorSizeInBytes"
        return CellLabel(text, says, colour, bool(wrong))

    def _element(self, index: Index) -> str:
        """Return an element's number in its tensor; for an output, the input's number and the copy's letters."""
        origin = self.picture.origin(self.tensor, index)
        if origin is None:
            return cut(str(row_major(index, self.tensor.sizes)))
        number = cut(str(row_major(origin.source, self.picture.tensors[0].sizes)))
        return f"{number}{NO_COPY if origin.number is None else letters(origin.number)}"

    def _bytes(self, offset: int) -> str:
        first, last = self.tensor.byte(offset), self.tensor.byte(offset + 1) - 1
        return f"byte {first}" if first == last else f"bytes {first} to {last}"

    def _names(self, cell: MemoryCell) -> str:
        named = ", ".join(f"{self.tensor.operand.name}{list(index)}" for index in cell.indices)
        more = cell.count - len(cell.indices)
        return f"{named} and {more} more" if more else named

    def _preferred(self, origin: ElementOrigin) -> int:
        repeated = [i for i, repeat in zip(origin.copy, self.picture.repeats, strict=False) if repeat > 1]
        return sum(i * step for i, step in zip(reversed(repeated), _STEPS, strict=False)) % len(COLOURS)


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
