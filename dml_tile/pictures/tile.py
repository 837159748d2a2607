"""A tile's two tensors as memory, and where each element of the output comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import floordiv, mod

from dml_tile.descriptors import OperatorDesc, TileOperatorDesc
from dml_tile.pictures.addresses import Index
from dml_tile.pictures.memory import TensorMemory, memory_of
from dml_tile.rules.tensor import Operand


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an element of the output: an element of the input, and the copy of the input that it is in.

    ``copy`` has an index for each of Repeats, ``number`` counts the copies; it is None where Repeats has no such copy.
    """

    source: Index
    copy: Index
    number: int | None


@dataclass(frozen=True, slots=True)
class TilePicture:
    """The memory of a tile's tensors; of those that cannot be drawn, the reasons by their names."""

    tensors: tuple[TensorMemory, ...]
    undrawn: dict[str, str]
    repeats: tuple[int, ...]

    def origin(self, memory: TensorMemory, index: Index) -> Origin | None:
        """The origin of an element of the output; None for an element of the input, and where it is unknown."""
        if not memory.operand.is_output or len(self.tensors) < 2:
            return None
        sizes = self.tensors[0].sizes
        if len(sizes) != len(index):
            return None
        copy = tuple(map(floordiv, index, sizes))
        return Origin(tuple(map(mod, index, sizes)), copy, self._number(copy))

    def _number(self, copy: Index) -> int | None:
        repeats = self.repeats
        if len(repeats) < len(copy) or any(i >= repeat for i, repeat in zip(copy, repeats, strict=False)):
            return None
        return row_major(copy, repeats[: len(copy)])


def row_major(index: Index, sizes: tuple[int, ...]) -> int:
    """The number of an element in row-major order, from 0."""
    return sum(i * math.prod(sizes[dimension:]) for dimension, i in enumerate(index, start=1))


def picture_of(desc: OperatorDesc | TileOperatorDesc | None) -> TilePicture:
    """The picture of a descriptor; an operator that is not a tile has nothing to draw."""
    tile = desc.desc if isinstance(desc, OperatorDesc) else desc
    if tile is None:
        return no_picture("it is no tile")
    memories = {}
    undrawn = {}
    for name, tensor in (("InputTensor", tile.input_tensor), ("OutputTensor", tile.output_tensor)):
        memory = memory_of(Operand(name, tensor))
        if isinstance(memory, str):
            undrawn[name] = memory
        else:
            memories[name] = memory
    return TilePicture(tuple(memories.values()), undrawn, tile.repeats or ())


def no_picture(why: str) -> TilePicture:
    """The picture of a tile of which nothing can be drawn."""
    return TilePicture((), {"the tile": why}, ())
