"""The marks that stand for cells of memory in a picture: a few ASCII characters, a colour, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from dml_tile.pictures.addresses import Index
from dml_tile.pictures.colours import colours_of
from dml_tile.pictures.memory import MemoryCell, TensorMemory
from dml_tile.pictures.rows import MemoryRow
from dml_tile.pictures.tile import Origin, TilePicture, row_major

COLOURS: Final = ("#e69f00", "#9ad4f5", "#35b58c", "#f0e442", "#5a9fd4", "#e8763a", "#d99abf")
"""Of the copies: Okabe and Ito's, also for those who cannot tell red from green, and light enough for black text."""

PADDING: Final = "."
SAME: Final = "="
MORE: Final = "+"
SHARED: Final = "!"
OUTSIDE: Final = ">"
NO_COPY: Final = "?"
CUT: Final = "~"

_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # without I and O, which look like digits
_MAX_MARK: Final = 10
_STEPS: Final = (1, 3, 2, 6, 4, 5, 1, 3)  # 3**i modulo 7, so that copies beside each other differ in colour


class Mark(NamedTuple):
    """The mark of a cell; its ``text`` alone tells what ``colour`` (a place in COLOURS) and ``is_wrong`` show too."""

    text: str
    says: str
    colour: int | None = None
    is_wrong: bool = False


NOTHING: Final = Mark("", "")
"""Stands for what is no part of the tensor."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a tensor's cells; ``colours`` are those of the copies, by their numbers."""

    picture: TilePicture
    memory: TensorMemory
    colours: Mapping[int, int] = field(default_factory=dict)

    def of(self, row: MemoryRow) -> Iterator[Mark]:
        """The marks of a row, one for each cell."""
        for i, cell in enumerate(row.cells):
            yield self._of_padding(row.offset + i) if cell is None else self._of_elements(cell)

    @property
    def longest(self) -> int:
        """The length of the longest mark of a cell with elements."""
        return max(len(self._of_elements(cell).text) for cell in self.memory.cells)

    def copies(self) -> dict[str, tuple[Index, int]]:
        """The copies of the input that are shown, by their letters, with their indices and colours."""
        found: dict[int, Origin] = {}
        for cell in self.memory.cells:
            origin = self.picture.origin(self.memory, cell.indices[0])
            if origin and origin.number is not None:
                found[origin.number] = origin
        return {letters(number): (found[number].copy, self.colours[number]) for number in sorted(found)}

    def coloured(self, rows: Iterable[MemoryRow]) -> Marks:
        """The same marks with colours, of which no two copies that touch in these rows share one."""
        copies = [[self._copy(cell) for cell in row.cells] for row in rows]
        origins = {origin.number: origin for row in copies for origin in row if origin and origin.number is not None}
        numbers = [[origin.number if origin else None for origin in row] for row in copies]
        colours = colours_of(numbers, lambda number: self._preferred(origins[number]), len(COLOURS))
        return replace(self, colours=colours)

    def _copy(self, cell: MemoryCell | None) -> Origin | None:
        return self.picture.origin(self.memory, cell.indices[0]) if cell else None

    def _of_padding(self, offset: int) -> Mark:
        if self.memory.byte(offset) >= self.memory.total:
            return NOTHING
        return Mark(PADDING, f"{self._bytes(offset)}: padding")

    def _of_elements(self, cell: MemoryCell) -> Mark:
        memory = self.memory
        origin = self._copy(cell)
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
        if memory.operand.is_output and cell.count > 1:
            wrong = SHARED
            text, says = text + SHARED, f"{says}; an error: elements of an output share bytes"
        if memory.byte(cell.offset + 1) > memory.total:
            wrong = OUTSIDE
            text, says = text + OUTSIDE, f"{says}; an error: beyond TotalTensorSizeInBytes"
        return Mark(text, says, colour, bool(wrong))

    def _element(self, index: Index) -> str:
        """An element's number in its tensor; of an output, the input's number and the copy's letters."""
        origin = self.picture.origin(self.memory, index)
        if origin is None:
            return cut(str(row_major(index, self.memory.sizes)))
        number = cut(str(row_major(origin.source, self.picture.tensors[0].sizes)))
        return f"{number}{NO_COPY if origin.number is None else letters(origin.number)}"

    def _bytes(self, offset: int) -> str:
        first, last = self.memory.byte(offset), self.memory.byte(offset + 1) - 1
        return f"byte {first}" if first == last else f"bytes {first} to {last}"

    def _names(self, cell: MemoryCell) -> str:
        named = ", ".join(f"{self.memory.name}{list(index)}" for index in cell.indices)
        more = cell.count - len(cell.indices)
        return f"{named} and {more} more" if more else named

    def _preferred(self, origin: Origin) -> int:
        repeated = [i for i, repeat in zip(origin.copy, self.picture.repeats, strict=False) if repeat > 1]
        return sum(i * step for i, step in zip(reversed(repeated), _STEPS, strict=False)) % len(COLOURS)


def letters(number: int) -> str:
    """A copy's letters, from its number: A to Z without I and O, then AA, AB and so on."""
    written = ""
    number += 1
    while number:
        number, last = divmod(number - 1, len(_LETTERS))
        written = f"{_LETTERS[last]}{written}"
    return cut(written)


def cut(text: str, longest: int = _MAX_MARK) -> str:
    """A text cut short where it is long, which it shows."""
    return text if len(text) <= longest else f"{text[: longest - 1]}{CUT}"
